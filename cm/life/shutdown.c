/* The end of a deployment: every Local Manager is asked to end its clients, which may need any
 * node's partitions for that, and when all have, or it takes too long, to end what else is its own;
 * one that is not connected gets a SIGINT, which means the same. When all their processes and
 * connections are gone (of one elsewhere there may be no process to see), or it takes too long, the
 * nodes are given back to the provider; then the loop ends, and the daemon clears away by force
 * what is left. */
#include "cm/life/shutdown.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cm/change/checkpoint.h"
#include "cm/nodes/provision.h"
#include "cm/nodes/quorum.h"
#include "cm/state/events.h"
#include "cm/change/scale/scale.h"
#include "net/supervisor.h"

#define CHECK_STEP (20 * MFS_MSEC)

/* A request that is answered at the end. */
struct waiter {
    struct mfs_deferred from;
    struct waiter *next;
};

struct mfs_shutdown {
    struct mfs_timer *check;
    bool asked;    /* of all nodes; before, of their clients alone */
    int64_t until; /* that is waited for */
    struct waiter *waiters;
};

static void stopped(void *arg, const struct mfs_err *err, const void *reply)
{
    struct mfs_node *n = arg;

    (void)reply;
    if (err && err->code != -ECONNABORTED)
        mfs_warn("shutdown", "%s: %s", n->record->name, err->msg);
}

static void ask(struct mfs_node *n)
{
    if (n->conn && !mfs_node_ask(n, MFS_MSG_STOP, NULL, MFS_STOP_TIME, stopped, n))
        return;
    if (!mfs_provision_brought_back(n)) /* else it is asked when it joins */
        mfs_provision_end(n);
}

/* Do all clients have ended that can be asked about? */
static bool clientless(const struct mfs_cm *cm)
{
    if (mfs_clock_mono() >= cm->shutdown->until)
        return true;
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (cm->nodes[i]->conn && !cm->nodes[i]->clientless)
            return false;
    return true;
}

static void ask_all(struct mfs_cm *cm)
{
    cm->shutdown->asked = true;
    cm->shutdown->until = mfs_clock_mono() + MFS_STOP_TIME;
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        ask(cm->nodes[i]);
}

/* Of all nodes at once, which is bounded (nodes/provision.h). */
static bool all_released(struct mfs_cm *cm)
{
    bool all = true;

    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        all &= mfs_provision_released(cm->nodes[i]);
    return all;
}

static void check(void *arg)
{
    struct mfs_cm *cm = arg;

    if (!cm->shutdown->asked && clientless(cm))
        ask_all(cm);
    if (!cm->shutdown->asked)
        return;
    if (mfs_clock_mono() < cm->shutdown->until)
        for (uint32_t i = 0; i < cm->state.nnodes; i++)
            if (cm->nodes[i]->conn || mfs_provision_runs(cm->nodes[i]))
                return;
    if (!all_released(cm))
        return;
    mfs_timer_cancel(cm->shutdown->check);
    cm->shutdown->check = NULL;
    mfs_loop_stop(cm->loop);
}

void mfs_shutdown_joined(struct mfs_node *n)
{
    if (n->cm->shutdown && n->cm->shutdown->asked)
        ask(n);
}

static void clients_ended(void *arg, const struct mfs_err *err, const void *reply)
{
    struct mfs_node *n = arg;

    stopped(arg, err, reply);
    n->clientless = true;
    if (n->cm->shutdown && !n->cm->shutdown->asked && clientless(n->cm)) /* else it is over */
        ask_all(n->cm);
}

/* One that was stopped by a signal goes on, to end by itself. */
static void ask_for_clients(struct mfs_node *n)
{
    mfs_provision_signal(n, SIGCONT);
    mfs_timer_cancel(n->restart);
    n->restart = NULL;
    mfs_provision_brought_back(n);
    n->clientless = !n->conn || mfs_node_ask(n, MFS_MSG_END_CLIENTS, NULL, MFS_STOP_CLIENTS_TIME,
                                             clients_ended, n);
}

void mfs_shutdown_begin(struct mfs_cm *cm)
{
    if (cm->shutdown)
        return;
    mfs_event_add(cm->paths->events, "cm", "stopping", "%s",
                  cm->start.failure.code ? "because the start failed" : "as asked");
    mfs_cm_set_phase(cm, MFS_PHASE_STOPPING);
    mfs_supervisor_stopping();
    mfs_scale_stop(cm);
    mfs_checkpoint_stop(cm);
    mfs_timer_cancel(cm->start.deadline);
    cm->start.deadline = NULL;
    cm->shutdown = calloc(1, sizeof *cm->shutdown);
    if (!cm->shutdown) {
        mfs_loop_stop(cm->loop);
        return;
    }
    cm->shutdown->until = mfs_clock_mono() + MFS_STOP_CLIENTS_TIME;
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        ask_for_clients(cm->nodes[i]);
    cm->shutdown->check = mfs_loop_timer(cm->loop, CHECK_STEP, CHECK_STEP, check, cm);
    if (!cm->shutdown->check)
        mfs_loop_stop(cm->loop);
}

void mfs_shutdown_wait(struct mfs_cm *cm, struct mfs_conn *c, uint64_t id)
{
    struct waiter *w = cm->shutdown ? malloc(sizeof *w) : NULL;

    if (!w) {
        mfs_conn_fail(c, id, -ENOMEM, "out of memory");
        return;
    }
    *w = (struct waiter){mfs_reply_later(c, id), cm->shutdown->waiters};
    cm->shutdown->waiters = w;
}

/* Of many nodes the first ones. "": all have been given back. */
static void name_left(const struct mfs_cm *cm, char *out, size_t n)
{
    size_t at = 0;

    out[0] = '\0';
    for (uint32_t i = 0; i < cm->state.nnodes && at < n; i++) {
        const struct mfs_node *node = cm->nodes[i];

        if (node->not_released[0])
            at += (size_t)snprintf(out + at, n - at, "%s%s: %s", at ? "; " : "", node->record->name,
                                   node->not_released);
    }
}

static void answer(const struct mfs_cm *cm, struct waiter *w)
{
    char left[MFS_ERR_MSG_MAX / 2];

    name_left(cm, left, sizeof left);
    if (left[0])
        mfs_deferred_fail(&w->from, -EREMOTEIO, "stopped, but not given back: %s", left);
    else
        mfs_deferred_reply(&w->from, MFS_MSG_STOP, NULL);
}

void mfs_shutdown_fini(struct mfs_cm *cm)
{
    while (cm->shutdown && cm->shutdown->waiters) {
        struct waiter *w = cm->shutdown->waiters;

        cm->shutdown->waiters = w->next;
        answer(cm, w);
        free(w);
    }
    free(cm->shutdown);
    cm->shutdown = NULL;
}
