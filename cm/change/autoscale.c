/* Adds and removes nodes by the policy, and keeps the table's `growing`.
 *
 * Each second look() gives the policy the nodes' figures, unless one is away or has not reported; a
 * decision becomes a change as `cm scale` would begin it. While one is under way, or after a
 * failure until its pause is over, nothing is begun. `growing` is true while nodes come or the
 * policy can still add some: a client that finds no memory waits then instead of failing. */
#include "cm/change/autoscale.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cluster/capacity.h"
#include "cm/change/auto_rebalance.h"
#include "cm/state/events.h"
#include "cm/change/pause.h"
#include "cm/state/policy_conf.h"
#include "cm/nodes/metrics.h"
#include "cm/nodes/push.h"
#include "cm/change/scale/scale.h"

#define LOOK     MFS_SEC
#define SETTLING (5 * MFS_SEC) /* until writers that waited for new nodes have gone on */

struct mfs_autoscale {
    struct mfs_cm *cm;
    struct mfs_timer *timer;
    struct mfs_policy policy;
    struct mfs_policy_settings numbers;
    struct mfs_policy_memory memory;
    struct mfs_pause out, in;    /* after failures in one direction */
    struct mfs_pause *under_way; /* of the direction of our own change, NULL: none */
    int64_t grown;               /* when nodes were last being added */
    bool push;                   /* the newest table has yet to go out */
};

/* ---- the table ------------------------------------------------------------------------------- */

static bool adds_nodes(const struct mfs_cm *cm)
{
    const struct mfs_cm_scale *s = &cm->state.scale;

    return mfs_cm_changing(cm) && s->to > s->from && strcmp(s->step, MFS_SCALE_UNDO) != 0;
}

bool mfs_autoscale_growing(const struct mfs_cm *cm)
{
    const struct mfs_autoscale *a = cm->autoscale;

    return adds_nodes(cm) || mfs_auto_rebalance_relieves(cm) ||
           (a->grown && mfs_clock_mono() < a->grown + SETTLING) ||
           (mfs_clock_mono() >= a->out.until &&
            mfs_policy_can_grow(&a->policy, &a->numbers, cm->state.nnodes));
}

static void pushed(void *arg, int64_t took, uint32_t missing)
{
    (void)arg;
    mfs_debug("autoscale", "table pushed, %lld us, %u have it not", (long long)(took / 1000),
              missing);
}

/* Tells the clients whether waiting makes sense. */
static void tell(struct mfs_autoscale *a)
{
    struct mfs_table *old = a->cm->state.table, *t;
    bool growing;
    int rc = 0;

    if (adds_nodes(a->cm))
        a->grown = mfs_clock_mono();
    growing = mfs_autoscale_growing(a->cm);
    if (old->growing != growing) {
        t = mfs_table_dup(old);
        if (!t)
            return;
        t->growing = growing;
        t->epoch++;
        a->cm->state.table = t;
        rc = mfs_cm_state_save(&a->cm->state, a->cm->paths->state);
        if (rc) {
            mfs_error("autoscale", "%s: %s", a->cm->paths->state, strerror(-rc));
            a->cm->state.table = old;
            free(t);
            return;
        }
        free(old);
        a->push = true;
    }
    if (a->push)
        a->push = mfs_push_table(a->cm, pushed, a) != 0;
}

bool mfs_autoscale_thresholds(const struct mfs_cm *cm, double *out_at, double *in_at)
{
    const struct mfs_autoscale *a = cm->autoscale;

    if (!a)
        return false;
    *out_at = a->policy.out != MFS_OUT_NONE ? a->numbers.out_at : 0;
    *in_at = a->policy.in != MFS_IN_NONE ? a->numbers.in_at : 0;
    return true;
}

void mfs_autoscale_tell(struct mfs_cm *cm)
{
    if (cm->autoscale && cm->state.table)
        tell(cm->autoscale);
}

/* ---- decisions ------------------------------------------------------------------------------- */

/* What is used includes the room that every partition needs beyond its data: with less it refuses
 * writes, which matters where nodes are small. False while a node is away or has not
 * reported yet. */
static bool look(const struct mfs_cm *cm, struct mfs_policy_view *v)
{
    *v = (struct mfs_policy_view){.now = (double)mfs_clock_mono() / (double)MFS_SEC,
                                  .nodes = cm->state.nnodes,
                                  .partitions = cm->state.nparts,
                                  .changing = mfs_cm_changing(cm)};
    for (uint32_t i = 0; i < cm->state.nnodes && !v->changing; i++) {
        const struct mfs_node *n = cm->nodes[i];
        uint64_t used;
        double full;

        if (!n->conn || !n->reported || !n->last.memory_capacity)
            return false;
        used = n->last.memory_used +
               (uint64_t)n->parts_seen * MFS_CAPACITY_NEXT_WRITES * cm->state.stripe_size;
        full = (double)used / (double)n->last.memory_capacity;
        v->used += used;
        v->capacity += n->last.memory_capacity;
        if (full > v->fullest) {
            v->fullest = full;
            v->fullest_parts = n->parts_seen;
        }
    }
    return true;
}

static void scaled(void *arg, const struct mfs_err *err, const struct mfs_scale_report *r)
{
    struct mfs_autoscale *a = arg;
    struct mfs_pause *p = a->under_way;

    (void)r;
    a->under_way = NULL;
    if (!p || mfs_cm_in_phase(a->cm, MFS_PHASE_STOPPING))
        return;
    if (err)
        mfs_pause_begin(p, a->cm, "policy-failed", err->msg);
    else
        *p = (struct mfs_pause){0};
}

static void begin(struct mfs_autoscale *a, const struct mfs_policy_decision *d)
{
    struct mfs_pause *p = d->target > a->cm->state.nnodes ? &a->out : &a->in;
    struct mfs_msg_scale what = {.how = "to", .n = d->target};
    struct mfs_err err = {0};
    int rc;

    if (mfs_clock_mono() < p->until)
        return;
    a->under_way = p;
    rc = mfs_scale_begin(a->cm, &what, d->why, scaled, a, &err);
    if (!rc)
        mfs_metric_add(a->cm->figures, MFS_CM_DECISIONS,
                       p == &a->out ? MFS_CM_DECIDED_OUT : MFS_CM_DECIDED_IN, 1);
    if (!rc)
        return;
    a->under_way = NULL;
    if (rc != -EBUSY && rc != -EAGAIN) /* else the next second will do */
        mfs_pause_begin(p, a->cm, "policy-refused", err.msg);
}

static void tick(void *arg)
{
    struct mfs_policy_decision d;
    struct mfs_autoscale *a = arg;
    struct mfs_policy_view v;
    struct mfs_cm *cm = a->cm;

    if (!mfs_cm_in_phase(cm, MFS_PHASE_RUNNING) || cm->step != MFS_STEP_DONE || !cm->state.table)
        return;
    if (look(cm, &v)) {
        mfs_policy_decide(&a->policy, &a->numbers, cm->state.started_with, &a->memory, &v, &d);
        if (d.target != cm->state.nnodes)
            begin(a, &d);
    }
    tell(a);
}

/* ---- the policy ------------------------------------------------------------------------------ */

static int use(struct mfs_autoscale *a, const char *name, struct mfs_err *err)
{
    struct mfs_policy_settings numbers;
    struct mfs_policy p;
    int rc = mfs_policy_ready(&a->cm->state, name, &p, &numbers, err);

    if (rc)
        return rc;
    a->policy = p;
    a->numbers = numbers;
    a->out = a->in = (struct mfs_pause){0};
    return 0;
}

int mfs_autoscale_change(struct mfs_cm *cm, const char *name, const char *who, struct mfs_err *err)
{
    char former[MFS_STATE_MAX];
    int rc;

    if (!mfs_cm_in_phase(cm, MFS_PHASE_RUNNING))
        return mfs_err_set(err, -EAGAIN, "the deployment is %s", cm->state.phase);
    rc = use(cm->autoscale, name, err);
    if (rc)
        return rc;
    memcpy(former, cm->state.policy, sizeof former);
    mfs_text_copy(cm->state.policy, sizeof cm->state.policy, name);
    rc = mfs_cm_state_save(&cm->state, cm->paths->state);
    if (rc) {
        memcpy(cm->state.policy, former, sizeof former);
        use(cm->autoscale, former, NULL);
        return mfs_err_set(err, rc, "%s: %s", cm->paths->state, strerror(-rc));
    }
    if (strcmp(former, name) != 0)
        mfs_event_add(cm->paths->events, "cm", "policy", "%s instead of %s%s", name, former, who);
    return 0;
}

void mfs_autoscale_on_policy(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_policy *m = body;
    struct mfs_cm *cm = arg;
    struct mfs_err err;

    if (strcmp(mfs_conn_role(c), "cli") != 0)
        mfs_conn_fail(c, id, -EPERM, "only an operator may change the policy");
    else if (mfs_autoscale_change(cm, m->name, "", &err))
        mfs_conn_fail(c, id, err.code, "%s", err.msg);
    else
        mfs_conn_reply(c, MFS_MSG_POLICY, id, NULL);
}

int mfs_autoscale_init(struct mfs_cm *cm)
{
    struct mfs_autoscale *a = calloc(1, sizeof *a);
    struct mfs_err err;

    if (!a)
        return -ENOMEM;
    a->cm = cm;
    cm->autoscale = a;
    /* A table that was saved and not pushed goes out now; what has it already ignores it. */
    a->push = mfs_cm_in_phase(cm, MFS_PHASE_RUNNING);
    if (use(a, cm->state.policy, &err))
        mfs_error("autoscale", "%s", err.msg); /* then there is none */
    a->timer = mfs_loop_timer(cm->loop, LOOK, LOOK, tick, a);
    return a->timer ? 0 : -ENOMEM;
}

void mfs_autoscale_fini(struct mfs_cm *cm)
{
    if (!cm->autoscale)
        return;
    mfs_timer_cancel(cm->autoscale->timer);
    free(cm->autoscale);
    cm->autoscale = NULL;
}
