/* A connection: from the options to a client of the deployment (client/client.h), and back. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/crypto/secure.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "lib/dirs.h"
#include "lib/lib.h"

#define CONNECT_MS   10000U
#define WINDOW       ((uint64_t)64 << 20)
#define CONTENTS     ((uint64_t)32 << 20)
#define TIDY_MEMORY  ((uint64_t)32 << 20) /* for a search for what other clients left */
#define FLAGS        MEMEFS_NO_ATIME
#define THREADS_MOST 256U
#define GROUPS_MOST  65536U /* as Linux has it */
#define OPTIONS_BASE                                                                               \
    offsetof(struct memefs_options, flags) /* the first version had at least this */

/* What a program that was made with another version of the header says. */
static int take_options(const struct memefs_options *given, struct memefs_options *o,
                        struct mfs_err *err)
{
    *o = (struct memefs_options)MEMEFS_OPTIONS_INIT;
    if (given == NULL)
        return 0;
    if (given->size < OPTIONS_BASE)
        return mfs_err_set(err, -EINVAL, "options: begin with MEMEFS_OPTIONS_INIT");
    for (size_t i = sizeof *o; i < given->size; i++)
        if (((const unsigned char *)given)[i] != 0)
            return mfs_err_set(err, -E2BIG, "options: libmemefs is older than the program");
    memcpy(o, given, given->size < sizeof *o ? given->size : sizeof *o);
    if (o->flags & ~FLAGS)
        return mfs_err_set(err, -EINVAL, "options: unknown flags %#x", o->flags & ~FLAGS);
    if (o->umask != MEMEFS_UMASK_OF_PROCESS && o->umask & ~0777U)
        return mfs_err_set(err, -EINVAL, "options: umask %o: 0 to 0777", o->umask);
    if (o->threads > THREADS_MOST)
        return mfs_err_set(err, -EINVAL, "options: %u threads: at most %u", o->threads,
                           THREADS_MOST);
    return 0;
}

static int copy_text(const char *text, char **copy)
{
    *copy = text != NULL ? strdup(text) : NULL;
    return text != NULL && *copy == NULL ? -ENOMEM : 0;
}

/* By default, what the program calls itself, which may be nothing, or no text. */
static int set_label(struct memefs *fs, const char *given, struct mfs_err *err)
{
    bool own = given == NULL || *given == '\0';
    const char *label = own ? program_invocation_short_name : given;

    if (*label == '/')
        return mfs_err_set(err, -EINVAL, "options: label %s: is no path", label);
    if (copy_text(*label != '\0' ? label : "program", &fs->label) < 0)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    for (char *at = fs->label; *at != '\0'; at++) {
        if (!iscntrl((unsigned char)*at))
            continue;
        if (!own)
            return mfs_err_set(err, -EINVAL, "options: label: has control characters");
        *at = '?';
    }
    return 0;
}

static int set_paths(struct memefs *fs, const struct memefs_options *o, struct mfs_err *err)
{
    int rc = mfs_paths_choose(&fs->paths, o->deployment != NULL ? o->deployment : "memefs",
                              o->state_dir, err);

    if (rc == 0 && o->secret != NULL) {
        rc = mfs_file_absolute(o->secret, fs->paths.secret, sizeof fs->paths.secret);
        if (rc < 0)
            return mfs_err_set(err, rc, "secret: %s: %s", o->secret, strerror(-rc));
    }
    if (rc == 0 && (copy_text(o->lm, &fs->lm) < 0 || copy_text(o->cm, &fs->cm) < 0))
        rc = mfs_err_set(err, -ENOMEM, "out of memory");
    return rc == 0 ? set_label(fs, o->label, err) : rc;
}

static int set_ids(struct memefs *fs, const struct memefs_ids *ids)
{
    int n = ids != NULL ? (int)ids->ngroups : getgroups(0, NULL);
    gid_t *groups = n >= 0 ? calloc((size_t)n + 1, sizeof *groups) : NULL;

    if (groups == NULL)
        return -ENOMEM;
    fs->ids = (struct mfs_ids){geteuid(), getegid(), groups, 0};
    if (ids != NULL) {
        fs->ids.uid = ids->uid;
        fs->ids.gid = ids->gid;
        for (int i = 0; i < n; i++)
            groups[i] = ids->groups[i];
    } else {
        n = getgroups(n, groups); /* -EINVAL: there are more by now */
    }
    if (n < 0)
        return -errno;
    fs->ids.ngroups = (size_t)n;
    return 0;
}

/* umask(2) tells only who sets it, and other threads may make files meanwhile. */
static mode_t umask_of_process(void)
{
    unsigned umask = 022;
    struct mfs_buf text;
    const char *line;

    mfs_buf_init(&text);
    if (mfs_file_read("/proc/self/status", 65536, &text) == 0 &&
        mfs_buf_append(&text, "", 1) == 0 &&
        (line = strstr(mfs_buf_data(&text), "\nUmask:")) != NULL)
        umask = (unsigned)strtoul(line + strlen("\nUmask:"), NULL, 8);
    mfs_buf_fini(&text);
    return (mode_t)umask;
}

static int set_rights(struct memefs *fs, const struct memefs_options *o, struct mfs_err *err)
{
    int rc;

    if (o->ids != NULL &&
        (o->ids->ngroups > GROUPS_MOST || (o->ids->ngroups > 0 && o->ids->groups == NULL)))
        return mfs_err_set(err, -EINVAL, "options: %zu groups: at most %u, in an array",
                           o->ids->ngroups, GROUPS_MOST);
    rc = set_ids(fs, o->ids);
    if (rc < 0)
        return mfs_err_set(err, rc, "groups: %s", strerror(-rc));
    fs->cred = (struct mfs_cred){.uid = fs->ids.uid,
                                 .gid = fs->ids.gid,
                                 .umask = o->umask == MEMEFS_UMASK_OF_PROCESS ? umask_of_process()
                                                                              : (mode_t)o->umask,
                                 .in_group = fs->ids.uid == 0, /* else by call: mfs_lib_cred */
                                 .drop = fs->ids.uid == 0 ? MFS_DROP_CAPS : MFS_DROP_ALL,
                                 .owned = {.user = fs->ids.uid != 0, .uid = fs->ids.uid}};
    return 0;
}

struct mfs_cred mfs_lib_cred(const struct memefs *fs, const struct mfs_attr *attr)
{
    struct mfs_cred cred = fs->cred;

    cred.in_group = cred.uid == 0 || mfs_ids_in_group(&fs->ids, attr->gid);
    return cred;
}

static int start(struct memefs *fs, const struct memefs_options *o, struct mfs_err *err)
{
    struct mfs_vfs_opts vfs = {.threads = o->threads,
                               .write_window = o->write_window ? o->write_window : WINDOW,
                               .read_window = o->read_window ? o->read_window : WINDOW,
                               .contents = o->contents ? o->contents : CONTENTS,
                               .files = o->files,
                               .names = o->names,
                               .no_atime = o->flags & MEMEFS_NO_ATIME,
                               .no_diratime = o->flags & MEMEFS_NO_ATIME,
                               .leases = true,
                               .dir_names = true};
    struct mfs_client_opts opts = {.paths = &fs->paths,
                                   .lm = fs->lm,
                                   .cm = fs->cm,
                                   .label = fs->label,
                                   .instance = fs->instance,
                                   .table_wait =
                                       (o->connect_ms ? o->connect_ms : CONNECT_MS) * MFS_MSEC,
                                   .io_timeout = o->io_ms * MFS_MSEC,
                                   .full_wait = o->full_ms * MFS_MSEC,
                                   .vfs = &vfs};
    int rc = mfs_client_create(&fs->client, &opts, err);

    if (rc < 0)
        return rc;
    fs->vfs = mfs_client_vfs(fs->client);
    rc = mfs_client_start(fs->client, TIDY_MEMORY, err);
    if (rc == 0)
        mfs_client_ready(fs->client);
    return rc;
}

static void destroy(struct memefs *fs)
{
    mfs_client_destroy(fs->client);
    if (fs->instance != 0)
        mfs_lib_instance_put(fs->instance);
    free((gid_t *)fs->ids.groups);
    free(fs->lm);
    free(fs->cm);
    free(fs->label);
    pthread_mutex_destroy(&fs->lock);
    free(fs);
}

int memefs_connect(const struct memefs_options *options, struct memefs **out)
{
    struct memefs *fs = out != NULL ? calloc(1, sizeof *fs) : NULL;
    struct memefs_options o;
    struct mfs_err err = {0};
    int rc = 0;

    if (fs == NULL)
        return (int)mfs_lib_end(out != NULL ? -ENOMEM : -EINVAL, "connect", NULL);
    *out = NULL;
    mfs_lib_quiet();
    mfs_secure_outlives_exit();
    pthread_mutex_init(&fs->lock, NULL);
    fs->forks = mfs_lib_forks();
    atomic_init(&fs->owner, 1);
    rc = take_options(options, &o, &err);
    if (rc == 0)
        rc = set_paths(fs, &o, &err);
    if (rc == 0)
        rc = set_rights(fs, &o, &err);
    if (rc == 0) {
        rc = mfs_lib_instance_get(&fs->instance);
        fs->instance = rc == 0 ? fs->instance : 0;
    }
    fs->flags = o.flags;
    fs->dev = (dev_t)(mfs_hash64(fs->paths.name, strlen(fs->paths.name), 0) & 0xffffffffU);
    if (rc == 0)
        rc = start(fs, &o, &err);
    if (rc == 0)
        *out = fs;
    else
        destroy(fs);
    return mfs_lib_end_said(rc, &err);
}

int memefs_disconnect(struct memefs *fs)
{
    int rc, first = 0;

    if (fs == NULL)
        return 0;
    rc = mfs_lib_enter(fs);
    if (rc == 0 && atomic_load(&fs->queues) > 0)
        rc = -EBUSY;
    if (rc < 0)
        return (int)mfs_lib_end(rc, "disconnect", NULL);
    mfs_client_stop_waiting(fs->client);
    mfs_client_ending(fs->client);
    while (fs->dirs != NULL)
        mfs_lib_closedir(fs->dirs);
    while (fs->files != NULL) {
        rc = mfs_lib_close(fs->files);
        first = first < 0 ? first : rc;
    }
    destroy(fs);
    return (int)mfs_lib_end(first, "disconnect", NULL);
}
