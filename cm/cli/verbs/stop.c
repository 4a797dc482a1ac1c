/* `cm stop`: the daemon ends the deployment; where there is none any more, or it does not do it,
 * what is recorded in the state directory is ended from here. Where that may be on other machines,
 * a new daemon takes the nodes up to stop them. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cm/nodes/cleanup.h"
#include "cm/ask/client.h"
#include "cm/state/lock.h"
#include "cm/provider/provider.h"
#include "cm/cli/give_back.h"
#include "cm/cli/stop_ask.h"
#include "cm/cli/verbs.h"
#include "cm/life/shutdown.h"

#define LOOK_TIME (3 * MFS_SEC)
#define ASK_TIME  (35 * MFS_SEC)
#define END_TIME  (20 * MFS_SEC)
#define FIND_TIME (30 * MFS_SEC) /* a new cm says sooner which nodes are there */
#define FIND_STEP (100 * MFS_MSEC)
#define STEP      (10 * MFS_MSEC)

static_assert(MFS_STOP_CLIENTS_TIME + MFS_STOP_TIME < ASK_TIME, "the daemon answers first");
static_assert(LOOK_TIME < FIND_TIME, "cm is asked more than once");

/* A daemon that is stuck, or stopped by a signal, will not end anything. */
static bool answers(const struct mfs_paths *p)
{
    struct mfs_status s = {0};
    struct mfs_err err;
    int rc = mfs_client_call(p, MFS_MSG_STATUS, NULL, LOOK_TIME, &s, &err);

    mfs_schema_clear(&mfs_status_schema, &s);
    return rc != -ETIMEDOUT;
}

/* *err has -EREMOTEIO when a node could not be given back, which may still run and cost money. All
 * else that the daemon has not done is done from here. */
static void end_daemon(const struct mfs_paths *p, const struct mfs_proc *daemon,
                       struct mfs_err *err)
{
    int64_t until = mfs_clock_mono() + ASK_TIME + END_TIME;
    char reply[sizeof(struct mfs_msg_empty)];
    bool done;
    int rc;

    if (!answers(p)) {
        mfs_proc_end(daemon, 0);
        return;
    }
    rc = mfs_client_call(p, MFS_MSG_STOP, NULL, ASK_TIME, reply, err);
    done = !rc || rc == -EREMOTEIO;
    /* It clears away what its nodes left, and exits. */
    while (done && mfs_proc_alive(daemon) && mfs_clock_mono() < until)
        mfs_clock_sleep(STEP);
    if (mfs_proc_alive(daemon))
        mfs_proc_end(daemon, done ? 0 : END_TIME);
}

/* Is there more of it than can be seen, and ended, from here? */
static bool is_elsewhere(const struct mfs_paths *p)
{
    const struct mfs_provider *provider;
    struct mfs_cm_state st;
    struct mfs_err err;
    bool is;

    if (mfs_cm_state_load(&st, p->state, &err))
        return false;
    provider = mfs_provider_find(st.provider);
    is = provider && !provider->traits->sees_processes && !strcmp(st.phase, MFS_PHASE_RUNNING);
    mfs_cm_state_clear(&st);
    return is;
}

/* Have its nodes found the new cm, or had the time for it? */
static bool settled(const struct mfs_paths *p)
{
    struct mfs_status s = {0};
    struct mfs_err err;
    bool is = !mfs_client_call(p, MFS_MSG_STATUS, NULL, LOOK_TIME, &s, &err) &&
              strcmp(s.state, MFS_PHASE_STARTING) != 0;

    mfs_schema_clear(&mfs_status_schema, &s);
    return is;
}

/* Only a cm can tell nodes on other machines to stop. */
static int revive(const struct mfs_paths *p, struct mfs_proc *daemon, struct mfs_err *err)
{
    int64_t until = mfs_clock_mono() + FIND_TIME;
    int rc = mfs_client_start_daemon(p, daemon, err);

    if (rc)
        return rc;
    while (mfs_proc_alive(daemon) && !settled(p) && mfs_clock_mono() < until)
        mfs_clock_sleep(FIND_STEP);
    if (mfs_proc_alive(daemon))
        return 0;
    return mfs_err_set(err, -ECHILD,
                       "its nodes may be on other machines, and the new cm that was to stop them "
                       "has ended (see %s); its state is left as it was",
                       p->log);
}

/* Ends what is left, with the lock held; `killed`: of a cm that has not been told to. *left is as
 * end_daemon's. */
static int end_rest(struct mfs_verb_call *call, bool killed, struct mfs_err *left,
                    struct mfs_err *err)
{
    struct mfs_paths *p = &call->paths;
    struct mfs_proc daemon = mfs_client_daemon(p); /* a start may have come in between */
    int rc = !daemon.pid && is_elsewhere(p) ? revive(p, &daemon, err) : 0;

    if (killed && !daemon.pid && !rc)
        mfs_give_back(p);
    if (!rc && daemon.pid)
        end_daemon(p, &daemon, left);
    if (!rc)
        rc = mfs_cleanup_processes(p, err);
    if (!rc)
        rc = mfs_cleanup_files(p, mfs_conf_flag(call->conf, "keep-logs"), err);
    return rc;
}

/* cm ends all, what is on this machine, too: its lm removes its files. */
static int stop_elsewhere(const struct mfs_paths *p, struct mfs_err *err)
{
    char reply[sizeof(struct mfs_msg_empty)];
    const struct mfs_msg_stop m = {.clear = true};
    int rc = mfs_client_call(p, MFS_MSG_STOP, &m, ASK_TIME, reply, err);

    if (rc)
        return rc;
    if (!access(p->state, F_OK)) /* of a cm that was here before */
        mfs_cleanup_moved(p);
    printf("%s: stopped\n", p->name);
    return 0;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_paths *p = &call->paths;
    struct mfs_proc daemon = mfs_client_daemon(p);
    char elsewhere[MFS_ADDRESS_MAX];
    struct mfs_err left = {0};
    int lock, rc = 0;

    mfs_log_open("cm", NULL, MFS_LOG_WARN);
    if (!mfs_conf_flag(call->conf, "yes") && !mfs_stop_may(p))
        return mfs_err_set(err, -ECANCELED, "nothing was stopped");
    if (!daemon.pid && mfs_client_is_elsewhere(p, elsewhere))
        return stop_elsewhere(p, err);
    if (daemon.pid)
        end_daemon(p, &daemon, &left);
    lock = mfs_lock_take(p, false, err);
    if (lock < 0 && lock != -ENOENT)
        return lock;
    if (lock < 0 || (!daemon.pid && !mfs_cleanup_needed(p)))
        printf("%s: %s\n", p->name, daemon.pid ? "stopped" : "not running");
    else if (!(rc = end_rest(call, !daemon.pid, &left, err)))
        printf("%s: stopped\n", p->name);
    if (lock >= 0)
        close(lock);
    if (!rc && left.code == -EREMOTEIO)
        *err = left;
    return rc ? rc : left.code == -EREMOTEIO ? left.code : 0;
}

static const struct mfs_conf_option options[] = {
    {"yes", MFS_CONF_FLAG, NULL, NULL, 0, 0,
     "do not ask, on a terminal, whether the files that it holds may be lost"},
    {"keep-logs", MFS_CONF_FLAG, NULL, NULL, 0, 0, "leave the logs in the state directory"},
    {0}};

const struct mfs_verb mfs_cm_stop = {
    .name = "stop",
    .summary = "unmount, stop every process of the deployment, remove its state",
    .destroys = true,
    .options = MFS_OPTIONS(options, mfs_deployment_options),
    .run = run};
