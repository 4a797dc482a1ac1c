/* The Local Managers' processes: one that dies is started again (after 1 s, doubling up to 30 s);
 * its redis processes and its mount go on meanwhile, and it takes them up again.
 *
 * Of one that can't be seen (cm/state/traits.h) the connection tells: what was started for it here
 * may end, or have ended with an earlier cm, while it lives. It is started again when it has
 * neither, and has had the time to connect by itself. */
#include "cm/nodes/control.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "cm/state/events.h"

#define DELAY_MOST (30 * MFS_SEC)

static_assert(MFS_RESTART_FIRST < DELAY_MOST, "the delay grows");

static void restart(void *arg)
{
    struct mfs_node *n = arg;
    struct mfs_err err;

    n->restart = NULL;
    if (n->conn && !n->cm->provider->traits->sees_processes)
        return;
    if (mfs_nodes_start(n->cm, n, &err)) {
        mfs_event_add(n->cm->paths->events, n->record->name, "lm-restart-failed", "%s", err.msg);
        n->restart = mfs_loop_timer(n->cm->loop, n->delay, 0, restart, n);
    } else {
        mfs_event_add(n->cm->paths->events, n->record->name, "lm-restarted", "process %d",
                      (int)n->proc.pid);
    }
    n->delay = n->delay * 2 < DELAY_MOST ? n->delay * 2 : DELAY_MOST;
}

static void how_it_ended(int status, char *out, size_t n)
{
    if (status == -1)
        snprintf(out, n, "ended");
    else if (WIFSIGNALED(status))
        snprintf(out, n, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(out, n, "exited with status %d", WEXITSTATUS(status));
}

static void process_gone(void *arg, pid_t pid, int status)
{
    struct mfs_node *n = arg;
    struct mfs_cm *cm = n->cm;
    char how[96];

    n->watch = NULL;
    n->proc.pid = 0;
    if (mfs_cm_in_phase(cm, MFS_PHASE_STOPPING))
        return;
    how_it_ended(status, how, sizeof how);
    if (!mfs_nodes_goes(n))
        mfs_event_add(cm->paths->events, n->record->name, "lm-gone", "process %d %s", (int)pid,
                      how);
    if (!cm->lm_ended(n, how) && !n->restart)
        n->restart = mfs_loop_timer(cm->loop, n->delay, 0, restart, n);
}

static void restart_if_away(struct mfs_node *n)
{
    n->restart = mfs_loop_timer(n->cm->loop, MFS_RETURN_TIME, 0, restart, n);
}

void mfs_nodes_hung_up(struct mfs_node *n)
{
    if (!n->cm->provider->traits->sees_processes && !n->proc.pid && !n->restart)
        restart_if_away(n);
}

static int watch_process(struct mfs_node *n)
{
    n->watch = mfs_loop_process(n->cm->loop, n->proc.pid, process_gone, n);
    return n->watch ? 0 : -errno;
}

int mfs_nodes_start(struct mfs_cm *cm, struct mfs_node *n, struct mfs_err *err)
{
    int rc = cm->provider->start(cm->paths, &cm->state, n->record, cm->address, &n->proc, err);

    if (rc)
        return rc;
    n->begun = mfs_clock_mono();
    rc = watch_process(n);
    return rc ? mfs_err_set(err, rc, "%s: its lm ended at once", n->record->name) : 0;
}

void mfs_nodes_adopt(struct mfs_cm *cm)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        struct mfs_node *n = cm->nodes[i];
        char path[PATH_MAX];

        if (!mfs_paths_node(cm->paths, n->record->id, "lm.pid", path) &&
            !mfs_proc_load(path, &n->proc) && mfs_proc_alive(&n->proc) && !watch_process(n))
            continue;
        n->proc.pid = 0;
        if (!cm->provider->traits->sees_processes && !mfs_nodes_goes(n))
            restart_if_away(n); /* it may be about to find us */
        else if (!n->record->transition[0] || !strcmp(cm->state.scale.step, MFS_SCALE_MOVE))
            restart(n); /* to one that comes or goes scale.c sees */
    }
}
