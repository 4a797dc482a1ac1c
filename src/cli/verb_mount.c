#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args/paths.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "fuse/mount/mount.h"
#include "store/store.h"

static const struct mfs_conf_option options[] = {
    {.key = "lm",
     .type = MFS_CONF_STRING,
     .arg = "SOCKET",
     .max = 100,
     .help = "the Local Manager's socket (default: that of node 0 in the state directory)"},
    {.key = "cm",
     .type = MFS_CONF_STRING,
     .arg = "HOST:PORT",
     .max = 100,
     .help = "the Central Manager, where no Local Manager runs"},
    {.key = "log",
     .type = MFS_CONF_STRING,
     .arg = "FILE",
     .max = 400,
     .help = "log file (default: mount-PID.log in the state directory)"},
    {.key = "foreground", .type = MFS_CONF_FLAG, .help = "stay; log to stderr unless --log"},
    {.key = "options",
     .type = MFS_CONF_STRING,
     .arg = "LIST",
     .def = "",
     .help = "mount options, separated by commas, see below; also -o LIST"},
    {0},
};

static const struct mfs_conf_option *const groups[] = {mfs_deployment_options, options, NULL};

static const char usage[] =
    "usage: memefs mount [OPTION]... PATH\n\n"
    "Mounts the file system of a deployment at PATH and returns when it answers.\n\n";

struct texts {
    struct mfs_paths paths;
    char address[PATH_MAX], log[PATH_MAX], path[PATH_MAX];
};

/* mount(8)'s "-o LIST" and "-oLIST", which may come several times, become one "--options LIST". */
static int gather_options(int *argc, char **argv, struct mfs_buf *list)
{
    int n = 1, rc = 0;

    for (int i = 1; i < *argc && rc == 0; i++) {
        if (strncmp(argv[i], "-o", 2) == 0)
            rc = mfs_buf_printf(list, "%s,",
                                argv[i][2] != '\0' ? argv[i] + 2
                                : i + 1 < *argc    ? argv[++i]
                                                   : "");
        else
            argv[n++] = argv[i];
    }
    *argc = n;
    argv[n] = NULL;
    return rc;
}

/* Partitions of the node whose lm serves us have their sockets here: ".../node-7/lm.sock". */
static uint32_t node_of(const char *socket)
{
    const char *last = strrchr(socket, '/'), *from = last;
    unsigned id;
    int end = 0;

    if (last == NULL)
        return MFS_NO_NODE;
    while (from > socket && from[-1] != '/')
        from--;
    if (sscanf(from, "node-%u/%n", &id, &end) == 1 && from + end == last + 1)
        return id;
    return MFS_NO_NODE;
}

static int set_address(const struct mfs_conf *conf, struct texts *t, struct mfs_mount_config *c)
{
    const char *lm = mfs_conf_str(conf, "lm"), *cm = mfs_conf_str(conf, "cm");
    int rc;

    c->node = MFS_NO_NODE;
    c->address = t->address;
    if (cm != NULL)
        return mfs_text_copy(t->address, sizeof t->address, cm);
    if (lm == NULL)
        rc = mfs_text_format(t->address, sizeof t->address, "unix:%s/node-0/lm.sock", t->paths.dir);
    else
        rc = mfs_text_format(t->address, sizeof t->address, "unix:%s",
                             strncmp(lm, "unix:", 5) == 0 ? lm + 5 : lm);
    c->node = node_of(t->address);
    return rc;
}

static int configure(const struct mfs_conf *conf, const char *path, struct texts *t,
                     struct mfs_mount_config *c, struct mfs_err *err)
{
    const char *log = mfs_conf_str(conf, "log");
    int rc = mfs_paths_init(&t->paths, conf, err);

    if (rc < 0)
        return rc;
    c->name = t->paths.name;
    c->foreground = mfs_conf_flag(conf, "foreground");
    rc = set_address(conf, t, c);
    if (rc == 0 && log != NULL)
        rc = mfs_file_absolute(log, t->log, sizeof t->log);
    else if (rc == 0 && !c->foreground)
        rc = mfs_text_format(t->log, sizeof t->log, "%s/mount-%d.log", t->paths.dir, (int)getpid());
    if (rc == 0)
        rc = mfs_file_absolute(path, t->path, sizeof t->path);
    c->secret = t->paths.secret;
    c->log = t->log[0] != '\0' ? t->log : NULL;
    c->path = t->path;
    if (rc < 0)
        return mfs_err_set(err, rc, "bad arguments: %s", strerror(-rc));
    return mfs_paths_check(&t->paths, err);
}

static int mount_it(const struct mfs_conf *conf, const char *path)
{
    struct mfs_mount_config c = {0};
    struct texts *t = calloc(1, sizeof *t);
    struct mfs_err err = {0};
    int status = MFS_EXIT_USAGE, rc;

    if (t == NULL)
        return MFS_EXIT_FAILED;
    mfs_mount_options_init(&c.options);
    if (mfs_conf_given(conf, "lm") && mfs_conf_given(conf, "cm"))
        rc = mfs_err_set(&err, -EINVAL, "--lm and --cm exclude each other");
    else
        rc = mfs_mount_options_parse(&c.options, mfs_conf_str(conf, "options"), &err);
    if (rc == 0) {
        status = MFS_EXIT_FAILED;
        rc = configure(conf, path, t, &c, &err);
    }
    if (rc == 0)
        rc = mfs_mount_run(&c, &err);
    if (rc == 0)
        status = MFS_EXIT_OK;
    else
        mfs_verb_fail("mount", status, &err);
    mfs_mount_options_fini(&c.options);
    free(t);
    return status;
}

int mfs_verb_mount(int argc, char **argv)
{
    struct mfs_conf *conf = mfs_conf_create(groups);
    struct mfs_buf list;
    struct mfs_err err;
    int status = MFS_EXIT_FAILED;

    mfs_buf_init(&list);
    if (conf == NULL || gather_options(&argc, argv, &list) < 0)
        goto out;
    if (mfs_verb_parse(conf, groups, usage, argc, argv, 1, &status) < 0) {
        if (status == MFS_EXIT_OK)
            mfs_mount_options_help(stdout);
        goto out;
    }
    if (mfs_buf_len(&list) > 0 &&
        mfs_conf_set(conf, "options", mfs_buf_data(&list), MFS_CONF_ARGV, &err) < 0) {
        status = mfs_verb_fail("mount", MFS_EXIT_USAGE, &err);
        goto out;
    }
    status = mount_it(conf, argv[1]);
out:
    mfs_buf_fini(&list);
    mfs_conf_destroy(conf);
    return status;
}
