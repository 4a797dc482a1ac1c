/* `cm stop`: the daemon ends the deployment; where there is none any more, or it does not do it,
 * what is recorded in the state directory is ended from here. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cm/cleanup.h"
#include "cm/client.h"
#include "cm/lock.h"
#include "cm/verbs.h"

#define LOOK_TIME (3 * MFS_SEC)
#define ASK_TIME  (35 * MFS_SEC)
#define END_TIME  (20 * MFS_SEC)
#define STEP      (10 * MFS_MSEC)

/* A daemon that is stuck, or stopped by a signal, will not end anything. */
static bool answers(const struct mfs_paths *p)
{
    struct mfs_status s = {0};
    struct mfs_err err;
    int rc = mfs_client_call(p, MFS_MSG_STATUS, NULL, LOOK_TIME, &s, &err);

    mfs_record_clear(&mfs_status_record, &s);
    return rc != -ETIMEDOUT;
}

static void end_daemon(const struct mfs_paths *p, const struct mfs_proc *daemon)
{
    int64_t until = mfs_clock_mono() + ASK_TIME + END_TIME;
    char reply[sizeof(struct mfs_msg_empty)];
    struct mfs_err err;
    int rc;

    if (!answers(p)) {
        mfs_proc_end(daemon, 0);
        return;
    }
    rc = mfs_client_call(p, MFS_MSG_STOP, NULL, ASK_TIME, reply, &err);
    /* It clears away what its nodes left, and exits. */
    while (!rc && mfs_proc_alive(daemon) && mfs_clock_mono() < until)
        mfs_clock_sleep(STEP);
    if (mfs_proc_alive(daemon))
        mfs_proc_end(daemon, rc ? END_TIME : 0);
}

int mfs_cmd_stop(struct mfs_verb_call *call, struct mfs_err *err)
{
    const struct mfs_paths *p = &call->paths;
    struct mfs_proc daemon = mfs_client_daemon(p);
    int lock, rc;

    mfs_log_open("cm", NULL, MFS_LOG_WARN);
    if (daemon.pid)
        end_daemon(p, &daemon);
    lock = mfs_lock_take(p->dir, false, err);
    if (lock == -ENOENT || (lock >= 0 && !daemon.pid && !mfs_cleanup_needed(p))) {
        if (lock >= 0)
            close(lock);
        printf("%s: %s\n", p->name, daemon.pid ? "stopped" : "not running");
        return 0;
    }
    if (lock < 0)
        return lock;
    /* A start may have come in between. */
    daemon = mfs_client_daemon(p);
    if (daemon.pid)
        end_daemon(p, &daemon);
    rc = mfs_cleanup_processes(p, err);
    if (!rc)
        rc = mfs_cleanup_files(p, mfs_conf_flag(call->conf, "keep-logs"), err);
    close(lock);
    if (!rc)
        printf("%s: stopped\n", p->name);
    return rc;
}
