/* `cm start`: checks what is asked for, writes the state, lets the daemon work, and waits. The
 * daemon goes on from the state alone, so a new deployment and one whose cm has died are started in
 * the same way. */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/timed_call.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "host/mountinfo.h"
#include "base/text.h"
#include "cm/nodes/cleanup.h"
#include "cm/ask/client.h"
#include "cm/ask/vote.h"
#include "cm/cli/give_back.h"
#include "cm/cli/adopt.h"
#include "cm/cli/config_file.h"
#include "cm/cli/options.h"
#include "cm/cli/restore.h"
#include "cm/life/daemon.h"
#include "cm/state/lock.h"
#include "cm/provider/options.h"
#include "cm/provider/provider.h"
#include "cm/ask/reach.h"
#include "cm/state/spec.h"
#include "cm/provider/traits.h"
#include "cm/cli/verbs.h"
#include "net/auth.h"
#include "cm/life/deploy.h"
#include "cm/life/shutdown.h"

#define START_TIME  (240 * MFS_SEC) /* the daemon gives up sooner, and says why */
#define STATUS_TIME (5 * MFS_SEC)
#define MEND_TIME   (10 * MFS_SEC) /* for a Local Manager that is being started again */
#define MOUNT_TIME  (70 * MFS_SEC) /* the nodes take up to a minute */
#define REACH_TIME  (4 * MFS_SEC)
#define LOOK_FIRST  (5 * MFS_MSEC)
#define LOOK_MOST   (100 * MFS_MSEC)
#define LOOK_TIME   (5 * MFS_SEC) /* at what is where we mount */

static_assert(MFS_DEPLOY_TIME + MFS_STOP_CLIENTS_TIME + MFS_STOP_TIME < START_TIME,
              "the daemon gives up first, and says why");
static_assert(MFS_MOUNT_TIME < MOUNT_TIME, "cm answers when a node has not mounted in time");
static_assert(MFS_RETURN_TIME < MEND_TIME, "a Local Manager finds cm again");
static_assert(LOOK_FIRST < LOOK_MOST, "the pause grows");
#define FAILURE_MAX (64U << 10)

struct start {
    struct mfs_verb_call *call;
    const struct mfs_paths *paths;
    const struct mfs_conf *conf;
    bool terminal, shown; /* progress: wanted, on the screen */
    int64_t began;        /* waiting */
    int64_t more_time;    /* that it may take longer, for its images, and in a queue */
    bool ours;            /* we began it, so we clear it away when it fails */
};

/* ---- progress -------------------------------------------------------------------------------- */

static void progress(struct start *s, const struct mfs_status *st)
{
    const char *waits_for = "";
    uint32_t up = 0;

    if (!s->terminal)
        return;
    for (uint32_t i = 0; i < st->nnodes; i++) {
        up += !strcmp(st->node[i].state, "up");
        if (st->node[i].waits_for[0])
            waits_for = st->node[i].waits_for;
    }
    fprintf(stderr, "\r\033[K%s: %s: %u of %u nodes are up%s%s%s", st->name, st->state, up,
            st->nnodes,
            st->epoch          ? ", mounting"
            : up == st->nnodes ? ", starting redis processes"
                               : "",
            *waits_for ? ", waiting: " : "", waits_for);
    s->shown = true;
}

static void progress_end(struct start *s)
{
    if (s->shown)
        fprintf(stderr, "\r\033[K");
    s->shown = false;
}

static void say_running(const struct mfs_cm_state *st, const char *how)
{
    printf("%s: %s; %s, %s, %s per node", st->name, how, MFS_TEXT_COUNT(st->nnodes, "node"),
           MFS_TEXT_COUNT(st->nparts, "partition"), MFS_TEXT_BYTES(st->memory));
    if (st->mount[0])
        printf(", mounted at %s", st->mount);
    putchar('\n');
    if (st->ui_write)
        printf("%s: the page at http://%s/ui may change it (--ui-write), with the token in the "
               "file token-write\n",
               st->name, st->ui);
    if (mfs_provider_traits(st->provider)->one_machine && st->nnodes > 1 && strstr(st->mount, "%n"))
        fprintf(stderr,
                "cm: start: several mounts on one machine are for tests: programs take a file "
                "that they see through two of them for two files (cp empties it)\n");
}

/* Of this machine's own mount only: those of other machines say it in their logs. */
static void say_covered(const struct mfs_cm_state *st)
{
    struct mfs_mountinfo info;

    if (!st->mount[0] || !mfs_provider_traits(st->provider)->one_machine ||
        strstr(st->mount, "%n") || !mfs_mountinfo_find(st->mount, &info) ||
        mfs_timed_call(mfs_timed_is_empty, st->mount, LOOK_TIME) != -ENOTEMPTY)
        return;
    fprintf(stderr, "cm: start: %s is not empty: what is in it is out of sight until the unmount\n",
            st->mount);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* The daemon is gone: why, and the end of the log that tells more. */
static int report_failure(const struct start *s, struct mfs_err *err)
{
    const char *rest;
    struct mfs_buf b;

    mfs_buf_init(&b);
    if (mfs_file_read(s->paths->failure, FAILURE_MAX, &b) || mfs_buf_append(&b, "", 1) ||
        mfs_buf_len(&b) == 1) {
        mfs_err_set(err, -ECHILD, "cm ended before the deployment was up; see %s", s->paths->log);
    } else {
        rest = strchr(mfs_buf_data(&b), '\n');
        mfs_err_set(err, -ECHILD, "%.*s", (int)strcspn(mfs_buf_data(&b), "\n"), mfs_buf_data(&b));
        if (rest && rest[1])
            fputs(rest + 1, stderr);
    }
    mfs_buf_fini(&b);
    return err->code;
}

/* 1 when it runs, 0 when it is on its way, or a negative errno. */
static int look(struct start *s, struct mfs_err *err)
{
    struct mfs_status st;
    int rc;

    if (access(s->paths->address, F_OK))
        return 0;
    rc = mfs_client_call(s->paths, MFS_MSG_STATUS, NULL, STATUS_TIME, &st, err);
    if (rc) /* not there yet, or not any more: the caller looks at its process */
        return 0;
    progress(s, &st);
    if (!strcmp(st.state, "running") || !strcmp(st.state, "scaling"))
        rc = 1;
    else if (!strcmp(st.state, "degraded") && mfs_clock_mono() > s->began + MEND_TIME)
        rc = mfs_err_set(
            err, -ENODEV,
            "the deployment is up, but not whole: cm status and cm events show what is missing, cm "
            "doctor what to do");
    mfs_schema_clear(&mfs_status_schema, &st);
    return rc;
}

/* 0 when it runs; -ECHILD, and nothing said yet, when the daemon has ended; else what is wrong. */
static int wait_running(struct start *s, const struct mfs_proc *daemon, struct mfs_err *err)
{
    int64_t until = mfs_clock_mono() + START_TIME + s->more_time, step = LOOK_FIRST;
    int rc = 0;

    s->began = mfs_clock_mono();
    while (!rc) {
        if (!mfs_proc_alive(daemon)) {
            rc = -ECHILD;
        } else if (mfs_clock_mono() > until) {
            rc = mfs_err_set(err, -ETIMEDOUT, "not up after %lld s; see %s",
                             (long long)((START_TIME + s->more_time) / MFS_SEC), s->paths->log);
        } else {
            rc = look(s, err);
            mfs_clock_sleep(step);
            step = step * 2 < LOOK_MOST ? step * 2 : LOOK_MOST;
        }
    }
    progress_end(s);
    return rc > 0 ? 0 : rc;
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Everything that was begun is ended again. */
static void undo(const struct start *s, const struct mfs_proc *daemon)
{
    struct mfs_err err;

    if (daemon)
        mfs_proc_end(daemon, 40 * MFS_SEC);
    mfs_give_back(s->paths);
    if (mfs_cleanup_processes(s->paths, &err) || mfs_cleanup_files(s->paths, false, &err))
        fprintf(stderr, "cm: start: cannot clear away: %s\n", err.msg);
}

/* *front is the command that runs it, where one does; else pid 0. */
static int begin_daemon(const struct start *s, const struct mfs_cm_state *st,
                        struct mfs_proc *front, struct mfs_proc *daemon, struct mfs_err *err)
{
    const struct mfs_provider *provider = mfs_provider_find(st->provider);
    const char *command[MFS_PROVIDER_RUN_DAEMON_MAX];

    if (provider && provider->run_daemon &&
        provider->run_daemon(st->provider_option, st->nprovider_options, command))
        return mfs_client_start_daemon_by(s->paths, command, front, daemon, err);
    return mfs_client_start_daemon(s->paths, daemon, err);
}

/* The command has done its work when cm runs. It is killed with all that it has started, as what
 * is left of it when the script ends that called us would have cm ended: srun has a process beside
 * it that cancels the step of a srun which dies. */
static int run_daemon(struct start *s, const struct mfs_cm_state *st, struct mfs_err *err)
{
    struct mfs_proc front = {0}, daemon = {0};
    int rc = begin_daemon(s, st, &front, &daemon, err);

    if (!rc)
        rc = wait_running(s, &daemon, err);
    if (!rc && front.pid)
        mfs_proc_kill_group(&front);
    if (rc == -ECHILD)
        rc = report_failure(s, err);
    if (rc && s->ours)
        undo(s, daemon.pid ? &daemon : NULL);
    return rc;
}

static int run_here(struct start *s, struct mfs_err *err)
{
    int rc;

    unlink(s->paths->failure);
    rc = mfs_daemon_run(s->paths, true, err);
    if (rc && s->ours)
        undo(s, NULL);
    return rc;
}

/* A Local Manager that has died meanwhile is back soon. */
static bool passes(int rc)
{
    return rc == -ECONNABORTED || rc == -ENOTCONN;
}

/* In a deployment that lived already a user may have unmounted it, or its client has died with its
 * cm: a start promises that it is mounted. */
static int mount_again(const struct start *s, struct mfs_err *err)
{
    int64_t until = mfs_clock_mono() + MEND_TIME;
    struct mfs_msg_mount all = {0};
    char reply[sizeof(struct mfs_msg_empty)];
    int rc;

    for (;;) {
        rc = mfs_client_call(s->paths, MFS_MSG_MOUNT, &all, MOUNT_TIME, reply, err);
        if (!passes(rc) || mfs_clock_mono() > until)
            return rc;
        mfs_clock_sleep(LOOK_MOST);
    }
}

static int run(struct start *s, const struct mfs_cm_state *st, const char *how, int *lock,
               struct mfs_err *err)
{
    enum mfs_log_level level = MFS_LOG_INFO;
    int rc;

    if (mfs_conf_flag(s->conf, "foreground")) {
        mfs_log_level_parse(st->log_level, &level);
        mfs_log_set_format(st->log_format);
        mfs_log_open("cm", NULL, level);
        close(*lock);
        *lock = -1;
        return run_here(s, err);
    }
    rc = run_daemon(s, st, err);
    if (!rc && !s->ours && st->mount[0])
        rc = mount_again(s, err);
    if (!rc)
        say_running(st, how);
    return rc;
}

static int start_new(struct start *s, int *lock, struct mfs_err *err)
{
    struct mfs_cm_state st;
    int rc = mfs_spec_make(s->conf, &st, err);

    s->call->usage = rc == -EINVAL;
    if (rc)
        return rc;
    s->ours = true;
    s->more_time = mfs_deploy_time(&st) - MFS_DEPLOY_TIME;
    rc = mfs_secret_create(s->paths->secret);
    if (!rc)
        rc = mfs_cm_state_save(&st, s->paths->state);
    if (rc) {
        mfs_err_set(err, rc, "%s: %s", s->paths->dir, strerror(-rc));
    } else {
        say_covered(&st);
        rc = run(s, &st, "running", lock, err);
    }
    if (!rc && !mfs_conf_given(s->conf, "memory") && !mfs_conf_flag(s->conf, "foreground"))
        printf("%s: memory: half of what is available on this machine (choose with --memory)\n",
               st.name);
    mfs_cm_state_clear(&st);
    return rc;
}

/* ---- what is there already ------------------------------------------------------------------- */

static int already(struct start *s, const struct mfs_proc *daemon, struct mfs_err *err)
{
    struct mfs_cm_state st;
    int rc = mfs_cm_state_load(&st, s->paths->state, err);

    if (rc)
        return rc;
    rc = mfs_spec_compare(s->conf, &st, err);
    s->call->usage = rc == -EINVAL;
    if (!rc)
        rc = wait_running(s, daemon, err);
    if (!rc && st.mount[0])
        rc = mount_again(s, err);
    if (!rc)
        say_running(&st, "already running");
    mfs_cm_state_clear(&st);
    return rc;
}

/* Do its nodes follow a cm that has begun elsewhere since? Then what is here is out of date. */
static bool has_moved(const struct start *s, const struct mfs_cm_state *st, struct mfs_err *err)
{
    const struct mfs_msg_vote look = {0};
    struct mfs_ballot b = {0};
    struct mfs_secret secret;
    bool has;

    if (mfs_secret_load(s->paths->secret, &secret, err))
        return false;
    has = !mfs_vote_ask(st, &secret, &look, REACH_TIME, &b, err) && b.term > st->term;
    mfs_secret_free(&secret);
    if (has) {
        mfs_err_set(
            err, -EEXIST,
            "the nodes of %s follow a cm that was started elsewhere, at %s; what the former "
            "one has left here is removed",
            st->name, b.cm);
        mfs_cleanup_moved(s->paths);
    }
    mfs_ballot_clear(&b);
    return has;
}

/* Without its cm. 1: something of it does; 0: nothing; a negative errno: unknown here. */
static int lives(const struct start *s, const struct mfs_cm_state *st, struct mfs_err *err)
{
    const struct mfs_provider *provider = mfs_provider_find(st->provider);

    if (mfs_cleanup_living(s->paths))
        return 1;
    if (!provider || provider->traits->sees_processes)
        return 0;
    if (has_moved(s, st, err))
        return err->code;
    if (mfs_reach_any(st->table, REACH_TIME))
        return 1;
    return mfs_err_set(err, -EHOSTUNREACH,
                       "no partition of %s can be reached from here, but there may be some on the "
                       "machines of its nodes; mend the network to them and start again (when they "
                       "are gone for good, cm stop clears away the rest)",
                       st->name);
}

/* --ui-write=no: the page's writing can be taken back while there is no cm. */
static int compare_to_go_on(const struct start *s, struct mfs_cm_state *st, struct mfs_err *err)
{
    bool take_back =
        st->ui_write && mfs_conf_given(s->conf, "ui-write") && !mfs_conf_flag(s->conf, "ui-write");
    int rc;

    st->ui_write &= !take_back;
    rc = mfs_spec_compare(s->conf, st, err);
    s->call->usage = rc == -EINVAL;
    if (rc || !take_back)
        return rc;
    rc = mfs_cm_state_save(st, s->paths->state);
    return rc ? mfs_err_set(err, rc, "%s: %s", s->paths->state, strerror(-rc)) : 0;
}

/* No cm runs. 1: the rest of the deployment lives on, or may do so, and has been taken up (or that
 * failed, with *rc); 0: there is nothing alive. */
static int take_up(struct start *s, int *lock, int *rc, struct mfs_err *err)
{
    struct mfs_cm_state st;
    int living;

    *rc = mfs_cm_state_load(&st, s->paths->state, err);
    if (*rc && *rc != -ENOENT && mfs_cleanup_living(s->paths)) {
        mfs_err_prefix(
            err, "the deployment lives, but its state makes no sense; copy out what its mounts "
                 "still show before cm stop ends it");
        return 1; /* never clear away data for that */
    }
    if (*rc) {
        *rc = 0;
        return 0;
    }
    living = strcmp(st.phase, MFS_PHASE_RUNNING) ? 0 : lives(s, &st, err);
    if (living > 0) {
        *rc = compare_to_go_on(s, &st, err);
        if (!*rc)
            *rc = run(s, &st, "running again, with a new cm", lock, err);
    } else {
        *rc = living;
    }
    mfs_cm_state_clear(&st);
    return living != 0;
}

/* A new deployment begins with a checkpoint: it is what that was, unless told otherwise. */
static int go_on_as_saved(struct start *s, struct mfs_err *err)
{
    struct mfs_buf taken;
    int rc;

    mfs_buf_init(&taken);
    rc = mfs_restore_options(s->call->conf, &taken, err);
    if (!rc && mfs_buf_len(&taken))
        printf("%s: as in the checkpoint:%.*s\n", s->paths->name, (int)mfs_buf_len(&taken),
               mfs_buf_data(&taken));
    fflush(stdout);
    mfs_buf_fini(&taken);
    return rc;
}

static int start(struct start *s, int *lock, struct mfs_err *err)
{
    struct mfs_proc daemon = mfs_client_daemon(s->paths);
    struct mfs_cm_state trial;
    int rc = 0;

    if (daemon.pid) {
        rc = already(s, &daemon, err);
        if (rc != -ECHILD) /* it died while we looked: then it is as if it had been dead */
            return rc;
    }
    if (take_up(s, lock, &rc, err))
        return rc;
    if (mfs_cleanup_is_node(s->paths))
        return mfs_err_set(err, -EEXIST,
                           "this machine is a node of deployment %s, whose cm is elsewhere (cm "
                           "status); cm start --adopt has it here",
                           s->paths->name);
    rc = go_on_as_saved(s, err);
    if (rc)
        return rc;
    /* Nothing is cleared away for a call that can't succeed. */
    rc = mfs_spec_make(s->conf, &trial, err);
    s->call->usage = rc == -EINVAL;
    if (rc)
        return rc;
    mfs_cm_state_clear(&trial);
    if (mfs_cleanup_needed(s->paths)) {
        fprintf(stderr, "cm: start: clearing away the remains of an earlier deployment\n");
        mfs_give_back(s->paths);
        rc = mfs_cleanup_processes(s->paths, err);
        if (!rc)
            rc = mfs_cleanup_files(s->paths, true, err);
        if (rc)
            return rc;
    }
    return start_new(s, lock, err);
}

/* cm is to be here from now on, where a node is. */
static int adopt(struct start *s, int *lock, struct mfs_err *err)
{
    struct mfs_proc daemon = mfs_client_daemon(s->paths);
    struct mfs_cm_state st;
    int rc;

    if (daemon.pid)
        return already(s, &daemon, err);
    rc = mfs_adopt(s->call, &st, err);
    if (rc)
        return rc;
    rc = run(s, &st, "running, with its cm here", lock, err);
    if (rc == -ENODEV) { /* as much of it as there is */
        fprintf(stderr, "cm: start: %s\n", err->msg);
        rc = 0;
    }
    mfs_cm_state_clear(&st);
    return rc;
}

static int adopt_verb(struct start *s, struct mfs_err *err)
{
    int lock = mfs_lock_take(&s->call->paths, false, err), rc;

    if (lock == -ENOENT)
        return mfs_err_set(err, lock, "no node of deployment %s is on this machine (no %s)",
                           s->paths->name, s->paths->dir);
    if (lock < 0)
        return lock;
    rc = adopt(s, &lock, err);
    if (lock >= 0)
        close(lock);
    return rc;
}

/* What can be found wrong before anything is touched. */
static int check(struct mfs_verb_call *call, struct mfs_err *err)
{
    const char *config = mfs_conf_str(call->conf, "config");
    char lm[PATH_MAX];
    int rc = 0;

    if (config) {
        rc = mfs_config_file_load(config, call->conf, err);
        if (!rc)
            rc = mfs_paths_init(&call->paths, call->conf, err); /* the file may name them */
        call->usage = rc != 0;
        if (!rc)
            rc = mfs_paths_trust(&call->paths, err);
    }
    if (rc)
        return rc;
    rc = mfs_provider_environment(call->conf, err);
    call->usage = rc == -EINVAL;
    if (rc)
        return rc;
    rc = mfs_proc_sibling("lm", lm, sizeof lm);
    if (!rc && access(lm, X_OK))
        rc = -errno;
    if (rc)
        return mfs_err_set(err, rc, "%s: %s", lm, strerror(-rc));
    rc = mfs_cleanup_check_place(&call->paths, err);
    call->usage = rc == -EEXIST;
    return rc;
}

static int start_verb(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct start s = {.call = call, .paths = &call->paths, .conf = call->conf};
    int lock, rc;

    mfs_log_open("cm", NULL, MFS_LOG_WARN);
    s.terminal = isatty(STDERR_FILENO);
    if (mfs_conf_flag(call->conf, "adopt"))
        return adopt_verb(&s, err);
    rc = check(call, err);
    if (rc)
        return rc;
    lock = mfs_lock_take(&call->paths, true, err);
    if (lock < 0)
        return lock;
    rc = start(&s, &lock, err);
    if (lock >= 0)
        close(lock);
    if (rc)
        rmdir(call->paths.dir); /* if it was made for nothing */
    return rc;
}

const struct mfs_verb mfs_cm_start = {
    .name = "start",
    .summary = "start a deployment; returns when every node is up and every mount answers",
    .options = MFS_OPTIONS(mfs_cm_start_options, MFS_PROVIDER_OPTIONS, mfs_cm_run_options,
                           mfs_deployment_options),
    .run = start_verb};
