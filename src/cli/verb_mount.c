/* memefs mount: which Local Manager or cm to ask, from the options or the state directory, where
 * the log goes, and what the mount is to be like; then the mount itself (fuse/mount/mount.h). */
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

struct texts {
    char log[PATH_MAX], path[PATH_MAX];
};

static int configure(const struct mfs_verb_call *call, struct texts *t, struct mfs_mount_config *c,
                     struct mfs_err *err)
{
    const char *log = mfs_conf_str(call->conf, "log");
    int rc = 0;

    c->paths = &call->paths;
    c->lm = mfs_conf_str(call->conf, "lm");
    c->cm = mfs_conf_str(call->conf, "cm");
    c->foreground = mfs_conf_flag(call->conf, "foreground");
    if (log != NULL)
        rc = mfs_file_absolute(log, t->log, sizeof t->log);
    else if (!c->foreground)
        rc = mfs_text_format(t->log, sizeof t->log, "%s/mount-%d.log", call->paths.dir,
                             (int)getpid());
    if (rc == 0)
        rc = mfs_file_absolute(call->args[0], t->path, sizeof t->path);
    c->log = t->log[0] != '\0' ? t->log : NULL;
    c->path = t->path;
    if (rc < 0)
        return mfs_err_set(err, rc, "bad arguments: %s", strerror(-rc));
    return mfs_paths_check(&call->paths, err); /* before anything is made */
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_mount_config c = {0};
    struct texts *t = calloc(1, sizeof *t);
    int rc;

    if (t == NULL)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    rc = mfs_mount_options_parse(&c.options, mfs_conf_str(call->conf, "options"), err);
    if (rc == 0 && mfs_conf_given(call->conf, "lm") && mfs_conf_given(call->conf, "cm"))
        rc = mfs_err_set(err, -EINVAL, "--lm and --cm exclude each other");
    call->usage = rc < 0;
    if (rc == 0)
        rc = configure(call, t, &c, err);
    if (rc == 0)
        rc = mfs_mount_run(&c, err);
    mfs_mount_options_fini(&c.options);
    free(t);
    return rc;
}

static const struct mfs_conf_option options[] = {
    {"lm", MFS_CONF_STRING, "SOCKET", NULL, 1, 100,
     "the Local Manager's socket (default: that of the first node here that answers)"},
    {"cm", MFS_CONF_STRING, "HOST:PORT", NULL, 1, 100,
     "the Central Manager, where no Local Manager runs"},
    {"log", MFS_CONF_STRING, "FILE", NULL, 1, 400,
     "log file (default: mount-PID.log in the state directory)"},
    {"foreground", MFS_CONF_FLAG, NULL, NULL, 0, 0, "stay; log to stderr unless --log"},
    {"options", MFS_CONF_LIST, "LIST", "", 0, 0,
     "mount options, separated by commas, see below; also -o LIST"},
    {"o", MFS_CONF_ALIAS, "options", NULL, 0, 0, NULL},
    {0}};

const struct mfs_verb mfs_verb_mount = {
    .name = "mount",
    .args = "PATH",
    .summary = "mount a deployment's file system",
    .about = "Mounts the file system of a deployment at PATH and returns when it answers.",
    .least = 1,
    .most = 1,
    .options = MFS_OPTIONS(mfs_deployment_options, options),
    .run = run,
    .help = mfs_mount_options_help};
