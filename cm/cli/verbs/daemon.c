/* `cm daemon`, which `cm start` runs: the daemon, logging to cm.log. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cm/life/daemon.h"
#include "cm/state/state.h"
#include "cm/cli/verbs.h"

/* Level and format are options of the start, kept in the state. */
static enum mfs_log_level take_saved(const struct mfs_paths *p)
{
    enum mfs_log_level level = MFS_LOG_INFO;
    struct mfs_cm_state s;
    struct mfs_err err;

    if (!mfs_cm_state_load(&s, p->state, &err)) {
        mfs_log_level_parse(s.log_level, &level);
        mfs_log_set_format(s.log_format);
        mfs_cm_state_clear(&s);
    }
    return level;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    int rc = mfs_log_open("cm", call->paths.log, take_saved(&call->paths));

    if (rc)
        return mfs_err_set(err, rc, "%s: %s", call->paths.log, strerror(-rc));
    if (chdir("/"))
        return mfs_err_set(err, -errno, "/: %s", strerror(errno));
    rc = mfs_daemon_run(&call->paths, false, err);
    if (rc)
        mfs_warn("daemon", "ended: %s", err->msg);
    return rc;
}

const struct mfs_verb mfs_cm_daemon = {
    .name = "daemon", .options = MFS_OPTIONS(mfs_deployment_options), .run = run};
