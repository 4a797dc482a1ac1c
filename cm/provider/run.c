#include "cm/provider/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/provider/children.h"
#include "host/proc.h"

struct mfs_run {
    struct mfs_proc proc;
    struct mfs_watch *watch;
    struct mfs_timer *limit;
    int64_t seconds;
    bool late; /* it has been killed */
    void (*done)(void *arg, const struct mfs_err *why);
    void *arg;
};

void mfs_run_drop(struct mfs_run *r)
{
    if (!r)
        return;
    mfs_timer_cancel(r->limit);
    mfs_watch_remove(r->watch);
    free(r);
}

static void ended(void *arg, pid_t pid, int status)
{
    struct mfs_run r = *(struct mfs_run *)arg;
    struct mfs_err why = {0};
    char how[96];

    (void)pid;
    free(arg);
    mfs_timer_cancel(r.limit);
    mfs_children_how(status, how, sizeof how);
    if (r.late)
        mfs_err_set(&why, -ETIMEDOUT, "was not done after %lld s, and was killed",
                    (long long)r.seconds);
    else if (status)
        mfs_err_set(&why, -ECHILD, "%s", how);
    r.done(r.arg, why.code ? &why : NULL);
}

static void too_late(void *arg)
{
    struct mfs_run *r = arg;

    r->limit = NULL;
    r->late = true;
    mfs_proc_kill_group(&r->proc);
}

struct mfs_run *mfs_run_begin(const struct mfs_provider_context *c, const char *const *argv,
                              int64_t limit, void (*done)(void *arg, const struct mfs_err *why),
                              void *arg, struct mfs_err *err)
{
    struct mfs_run *r = calloc(1, sizeof *r);
    pid_t pid = r ? mfs_proc_spawn(argv, c->paths->log) : -ENOMEM;

    if (pid < 0) {
        free(r);
        mfs_err_set(err, (int)pid, "%s: %s", argv[0], strerror((int)-pid));
        return NULL;
    }
    *r = (struct mfs_run){.seconds = limit / MFS_SEC, .done = done, .arg = arg};
    if (mfs_proc_identify(pid, &r->proc))
        r->proc = (struct mfs_proc){.pid = pid}; /* it has ended already */
    r->watch = mfs_loop_process(c->loop, pid, ended, r);
    r->limit = r->watch ? mfs_loop_timer(c->loop, limit, 0, too_late, r) : NULL;
    if (r->limit)
        return r;
    mfs_err_set(err, -ENOMEM, "out of memory");
    mfs_proc_kill_group(&r->proc);
    mfs_run_drop(r);
    return NULL;
}
