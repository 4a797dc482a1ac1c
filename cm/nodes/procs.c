/* The Local Managers' processes: one that dies is started again (after 1 s, doubling up to 30 s);
 * its redis processes and its mount go on meanwhile, and it takes them up again.
 *
 * Of one elsewhere (provider.h) it's the connection that tells: what was started for it here may
 * end, or have ended with an earlier cm, while it lives. It is started again when it has neither,
 * and has had the time to connect by itself. */
#include "cm/nodes/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "cm/state/events.h"

#define DELAY_MOST (30 * MFS_SEC)

static void restart(void *arg)
{
    struct mfs_cm_live *l = arg;
    struct mfs_err err;

    l->restart = NULL;
    if (l->conn && l->cm->provider->elsewhere)
        return;
    if (mfs_nodes_start(l->cm, l, &err)) {
        mfs_event_add(l->cm->paths->events, l->node->name, "lm-restart-failed", "%s", err.msg);
        l->restart = mfs_loop_timer(l->cm->loop, l->delay, 0, restart, l);
    } else {
        mfs_event_add(l->cm->paths->events, l->node->name, "lm-restarted", "process %d",
                      (int)l->proc.pid);
    }
    l->delay = l->delay * 2 < DELAY_MOST ? l->delay * 2 : DELAY_MOST;
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
    struct mfs_cm_live *l = arg;
    struct mfs_cm *cm = l->cm;
    char how[96];

    l->watch = NULL;
    l->proc.pid = 0;
    if (mfs_cm_in_phase(cm, MFS_PHASE_STOPPING))
        return;
    how_it_ended(status, how, sizeof how);
    if (!mfs_nodes_goes(l))
        mfs_event_add(cm->paths->events, l->node->name, "lm-gone", "process %d %s", (int)pid, how);
    if (!cm->lm_ended(l, how) && !l->restart)
        l->restart = mfs_loop_timer(cm->loop, l->delay, 0, restart, l);
}

static void restart_if_away(struct mfs_cm_live *l)
{
    l->restart = mfs_loop_timer(l->cm->loop, MFS_RETURN_TIME, 0, restart, l);
}

void mfs_nodes_hung_up(struct mfs_cm_live *l)
{
    if (l->cm->provider->elsewhere && !l->proc.pid && !l->restart)
        restart_if_away(l);
}

static int watch_process(struct mfs_cm_live *l)
{
    l->watch = mfs_loop_process(l->cm->loop, l->proc.pid, process_gone, l);
    return l->watch ? 0 : -errno;
}

int mfs_nodes_start(struct mfs_cm *cm, struct mfs_cm_live *l, struct mfs_err *err)
{
    int rc = cm->provider->start(cm->paths, &cm->state, l->node, cm->address, &l->proc, err);

    if (rc)
        return rc;
    rc = watch_process(l);
    return rc ? mfs_err_set(err, rc, "%s: its lm ended at once", l->node->name) : 0;
}

void mfs_nodes_adopt(struct mfs_cm *cm)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        struct mfs_cm_live *l = cm->live[i];
        char path[PATH_MAX];

        if (!mfs_paths_node(cm->paths, l->node->id, "lm.pid", path) &&
            !mfs_proc_load(path, &l->proc) && mfs_proc_alive(&l->proc) && !watch_process(l))
            continue;
        l->proc.pid = 0;
        if (cm->provider->elsewhere && !mfs_nodes_goes(l))
            restart_if_away(l); /* it may be about to find us */
        else if (!l->node->turn[0] || !strcmp(cm->state.scale.step, MFS_SCALE_MOVE))
            restart(l); /* to one that comes or goes scale.c sees */
    }
}
