/* The last that this cm does is to tell each Local Manager whom to wait for and, in this order, to
 * give its state away; then it acts no more. What was under way goes on as after the death of a cm.
 */
#include "cm/life/handover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/life/shutdown.h"
#include "cm/nodes/copies.h"
#include "cm/nodes/follow.h"
#include "cm/nodes/quorum.h"
#include "cm/state/events.h"
#include "proto/times.h"

#define LEAVES_TIME (500 * MFS_MSEC) /* for nodes that end as well to say so */
#define ADOPT_TIME  (20 * MFS_SEC)   /* for a node to have a cm started */
#define KNOW_TIME   MFS_SEC          /* for the nodes to know that another cm comes */
#define SENT_TIME   (300 * MFS_MSEC) /* for the last words to leave */

struct mfs_handover {
    struct mfs_cm *cm;
    /* given away */
    struct mfs_deferred from; /* what was asked for it */
    uint32_t candidate;       /* node at which another cm begins */
    uint32_t awaited;         /* nodes that have not answered that they know */
    struct mfs_timer *wait;   /* for them; then, for the last words to leave */
    /* told to end */
    int64_t told;              /* mono; 0: not */
    struct mfs_timer *timer;   /* for nodes that leave to say so */
    struct mfs_deferred asker; /* asked for it; none: a signal did */
    uint32_t asked;            /* node that is starting a cm */
    uint32_t next;             /* index in the list from which on others may be asked */
    bool any;                  /* one was asked */
};

static struct mfs_handover *open_handover(struct mfs_cm *cm)
{
    if (!cm->handover)
        cm->handover = calloc(1, sizeof *cm->handover);
    if (cm->handover)
        cm->handover->cm = cm;
    return cm->handover;
}

/* ---- giving it away ---------------------------------------------------------------------------
 */

static int check_state(const struct mfs_cm *cm, struct mfs_err *err)
{
    if (cm->provider->traits->sees_processes)
        return mfs_err_set(err, -EOPNOTSUPP, "all nodes are on one machine, and cm with them");
    if (cm->step != MFS_STEP_DONE || !mfs_cm_in_phase(cm, MFS_PHASE_RUNNING))
        return mfs_err_set(err, -EAGAIN, "the deployment is %s", cm->state.phase);
    if (cm->checkpoint)
        return mfs_err_set(err, -EBUSY, "a checkpoint is being written");
    if (!strcmp(cm->state.scale.step, MFS_SCALE_RENEW))
        return mfs_err_set(err, -EBUSY,
                           "partitions of a node that is dead are being begun anew: wait for that");
    return 0;
}

static int check(const struct mfs_cm *cm, uint32_t candidate, struct mfs_err *err)
{
    int rc = check_state(cm, err);

    if (!rc && !mfs_nodes_find(cm, candidate))
        rc = mfs_err_set(err, -EPERM, "node-%u is no node of it (any more)", candidate);
    return rc;
}

static void end(void *arg)
{
    struct mfs_handover *h = arg;

    h->wait = NULL;
    mfs_loop_stop(h->cm->loop);
}

/* From here on nothing reaches a node, and no part of cm begins anything. */
static void fall_silent(struct mfs_cm *cm)
{
    mfs_text_copy(cm->state.phase, sizeof cm->state.phase, MFS_PHASE_STOPPING);
    cm->superseded = true;
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        struct mfs_conn *c = cm->nodes[i]->conn;

        cm->nodes[i]->conn = NULL;
        if (c)
            mfs_conn_close(c);
    }
}

static void give(struct mfs_handover *h)
{
    struct mfs_cm *cm = h->cm;
    struct mfs_msg_state last = {.term = cm->state.term, .candidate = cm->state.candidate};
    struct mfs_conn *c = h->from.conn;
    int rc = mfs_cm_state_save(&cm->state, cm->paths->state);

    last.revision = cm->state.revision;
    last.text = rc ? NULL : (char *)mfs_copies_text(cm);
    if (!last.text) {
        mfs_deferred_fail(&h->from, -EBUSY, "%s can't be written", cm->paths->state);
        mfs_quorum_raise(cm, cm->state.term + 1); /* the nodes wait for one of the next */
        return;
    }
    mfs_event_add(cm->paths->events, "cm", "handed-over", "to a cm at node-%u", h->candidate);
    mfs_deferred_reply(&h->asker, MFS_MSG_ADOPT, NULL);
    mfs_conn_get(c);
    mfs_deferred_reply(&h->from, MFS_MSG_HANDOVER, &last);
    fall_silent(cm);
    mfs_conn_finish(c);
    mfs_conn_put(c);
    h->wait = mfs_loop_timer(cm->loop, SENT_TIME, 0, end, h);
    if (!h->wait)
        mfs_loop_stop(cm->loop);
}

static void all_know(void *arg)
{
    struct mfs_handover *h = arg;

    h->wait = NULL;
    h->awaited = 0;
    give(h);
}

static void node_knows(void *arg, const struct mfs_err *err, const void *reply)
{
    struct mfs_handover *h = arg;

    (void)err;
    (void)reply;
    if (!h->awaited || --h->awaited || h->cm->superseded)
        return;
    mfs_timer_cancel(h->wait);
    all_know(h);
}

static void tell_nodes(struct mfs_handover *h)
{
    struct mfs_cm *cm = h->cm;
    const struct mfs_msg_follow next = {.term = cm->state.term + 1, .candidate = h->candidate};

    h->awaited = 1;
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (cm->nodes[i]->conn)
            h->awaited +=
                !mfs_node_ask(cm->nodes[i], MFS_MSG_FOLLOW, &next, KNOW_TIME, node_knows, h);
    node_knows(h, NULL, NULL);
}

static int begin(struct mfs_cm *cm, struct mfs_conn *c, uint64_t id, uint32_t candidate,
                 struct mfs_err *err)
{
    struct mfs_handover *h;
    int rc = strcmp(mfs_conn_role(c), "cli") ? mfs_err_set(err, -EPERM, "only an operator may")
                                             : check(cm, candidate, err);

    if (rc)
        return rc;
    h = open_handover(cm);
    if (h && h->from.conn)
        return mfs_err_set(err, -EBUSY, "another cm is about to begin, at node-%u", h->candidate);
    if (h)
        h->wait = mfs_loop_timer(cm->loop, KNOW_TIME, 0, all_know, h);
    if (!h || !h->wait)
        return mfs_err_set(err, -EBUSY, "out of memory");
    h->from = mfs_reply_later(c, id);
    h->candidate = candidate;
    tell_nodes(h);
    return 0;
}

void mfs_handover_on_ask(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_handover *m = body;
    struct mfs_cm *cm = arg;
    struct mfs_err err;
    int rc = cm->superseded ? mfs_err_set(&err, -EBUSY, "it has handed over already")
                            : begin(cm, c, id, m->candidate, &err);

    if (rc)
        mfs_conn_fail(c, id, rc, "%s", err.msg);
}

/* ---- by itself --------------------------------------------------------------------------------
 */

/* The part of an address before its port. */
static bool is_here(const struct mfs_cm *cm, const char *host)
{
    size_t len = strlen(host);
    const char *at = cm->address[0] == '[' ? cm->address + 1 : cm->address;

    return !strncmp(at, host, len) && (at[len] == ':' || at[len] == ']');
}

/* Is its machine another one, and stays when what cm is in ends? */
static bool stays(const struct mfs_node *n)
{
    const struct mfs_cm *cm = n->cm;
    const struct mfs_cm_node *r = n->record;

    return n->conn && r->control && !r->leave_by && !r->transition[0] && !n->stop_sent &&
           !is_here(cm, r->address) &&
           !(cm->provider->ends_with_cm &&
             cm->provider->ends_with_cm(cm->provider_state, r->handle));
}

static void ask_next(struct mfs_handover *h);

static void asked(void *arg, const struct mfs_err *err, const void *reply)
{
    struct mfs_handover *h = arg;
    struct mfs_cm *cm = h->cm;

    (void)reply;
    if (cm->superseded || !mfs_cm_in_phase(cm, MFS_PHASE_RUNNING))
        return;
    mfs_event_add(cm->paths->events, "cm", "handover-failed", "node-%u: %s", h->asked,
                  err ? err->msg : "its cm has not asked for what this one knows");
    ask_next(h);
}

/* The nodes go on, and any of them may have a cm. */
static void end_alone(struct mfs_cm *cm)
{
    mfs_event_add(
        cm->paths->events, "cm", "ended",
        "no node could start a cm; cm start --adopt on any of them does, while they last");
    mfs_loop_stop(cm->loop);
}

/* All that there is ends with this cm. */
static void stop(struct mfs_cm *cm)
{
    mfs_info("daemon", "no node stays: stopping the deployment");
    cm->clears = true;
    mfs_shutdown_begin(cm);
}

/* All is as before. */
static void give_up(struct mfs_handover *h)
{
    h->told = 0;
    h->next = 0;
    if (h->any)
        mfs_deferred_fail(&h->asker, -EHOSTUNREACH,
                          "no node could start a cm (cm events has the reasons); it stays here");
    else
        mfs_deferred_fail(&h->asker, -ENODEV,
                          "no node is on a machine that stays when this job ends: cm scale +1 asks "
                          "for one; cm stays here");
}

static void ask_next(struct mfs_handover *h)
{
    struct mfs_cm *cm = h->cm;

    while (h->next < cm->state.nnodes) {
        struct mfs_node *n = cm->nodes[h->next++];

        if (!stays(n))
            continue;
        h->asked = n->record->id;
        h->any = true;
        if (!mfs_node_ask(n, MFS_MSG_ADOPT, NULL, ADOPT_TIME, asked, h))
            return;
    }
    if (h->asker.conn)
        give_up(h);
    else if (h->any)
        end_alone(cm);
    else
        stop(cm);
}

static bool one_stays(const struct mfs_cm *cm)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (stays(cm->nodes[i]))
            return true;
    return false;
}

static void known(void *arg)
{
    struct mfs_handover *h = arg;

    h->timer = NULL;
    if (!one_stays(h->cm) && mfs_nodes_awaited(h->cm))
        h->timer = mfs_loop_timer(h->cm->loop, LEAVES_TIME, 0, known, h);
    if (!h->timer)
        ask_next(h);
}

bool mfs_handover_begin(struct mfs_cm *cm)
{
    struct mfs_handover *h;

    if (cm->superseded)
        return true;
    if (cm->provider->traits->sees_processes || cm->step != MFS_STEP_DONE ||
        !mfs_cm_in_phase(cm, MFS_PHASE_RUNNING))
        return false;
    h = open_handover(cm);
    if (!h)
        return false;
    if (h->told) /* the second time it means at once; it leaves already where an operator asked */
        return h->asker.conn || mfs_clock_mono() - h->told < MFS_TOLD_ONCE;
    h->told = mfs_clock_mono();
    h->timer = mfs_loop_timer(cm->loop, LEAVES_TIME, 0, known, h);
    return h->timer != NULL;
}

void mfs_handover_on_leave(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    struct mfs_cm *cm = arg;
    struct mfs_handover *h;
    struct mfs_err err;

    (void)body;
    if (strcmp(mfs_conn_role(c), "cli") != 0 || cm->superseded) {
        mfs_conn_fail(c, id, -EPERM, "only an operator may, of a cm that stays");
        return;
    }
    if (check_state(cm, &err)) {
        mfs_conn_fail(c, id, err.code, "%s", err.msg);
        return;
    }
    h = open_handover(cm);
    if (!h || h->told) {
        mfs_conn_fail(c, id, -EBUSY, "cm is leaving already");
        return;
    }
    h->told = mfs_clock_mono();
    h->any = false;
    h->asker = mfs_reply_later(c, id);
    ask_next(h);
}

void mfs_handover_fini(struct mfs_cm *cm)
{
    if (!cm->handover)
        return;
    mfs_timer_cancel(cm->handover->timer);
    mfs_timer_cancel(cm->handover->wait);
    mfs_deferred_drop(&cm->handover->from);
    mfs_deferred_drop(&cm->handover->asker);
    free(cm->handover);
    cm->handover = NULL;
}
