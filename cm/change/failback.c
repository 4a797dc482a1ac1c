/* Failback: see the header. Each second it is looked whether there were failovers since the shares
 * were last as planned (`settled`); when the deployment has been calm for CALM, one change as of
 * `cm rebalance` is begun, if mfs_failback_due says that it matters. */
#include "cm/change/failback.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cm/change/pause.h"
#include "cm/partitions/replicas.h"
#include "cm/change/scale/impl.h"

#define LOOK MFS_SEC
#define CALM                                                                                       \
    (30 * MFS_SEC) /* since all is whole: faults may go on, and what moves has no replica */

struct mfs_failback {
    struct mfs_cm *cm;
    struct mfs_timer *timer;
    uint64_t settled; /* failovers after which the shares are as planned, or nearly */
    uint64_t under_way;
    int64_t calm_since; /* 0: it is not */
    struct mfs_pause pause;
};

bool mfs_failback_due(const uint32_t *count, const uint32_t *planned, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t apart = count[i] > planned[i] ? count[i] - planned[i] : planned[i] - count[i];

        if (apart > planned[i] / 4 + 1)
            return true;
    }
    return false;
}

static bool is_calm(const struct mfs_cm *cm)
{
    if (!mfs_cm_in_phase(cm, MFS_PHASE_RUNNING) || cm->step != MFS_STEP_DONE || !cm->state.table ||
        mfs_cm_exclusive(cm) || cm->state.nstale || mfs_replicas_missing(cm) ||
        mfs_scale_silent(cm))
        return false;
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (cm->state.node[i].transition[0])
            return false;
    return true;
}

static void done(void *arg, const struct mfs_err *err, const struct mfs_scale_report *r)
{
    struct mfs_failback *h = arg;

    (void)r;
    if (mfs_cm_in_phase(h->cm, MFS_PHASE_STOPPING))
        return;
    if (err) {
        mfs_pause_begin(&h->pause, h->cm, "rebalance-failed", err->msg);
        return;
    }
    h->pause = (struct mfs_pause){0};
    h->settled = h->under_way;
}

static void begin(struct mfs_failback *h, const char *why)
{
    struct mfs_msg_scale what = {.how = "rebalance"};
    struct mfs_err err = {0};
    int rc;

    h->under_way = h->cm->state.table->failovers;
    rc = mfs_scale_begin(h->cm, &what, why, done, h, &err);
    if (rc && rc != -EBUSY && rc != -EAGAIN) /* else the next second will do */
        mfs_pause_begin(&h->pause, h->cm, "rebalance-refused", err.msg);
}

static void compare(struct mfs_failback *h, const struct mfs_plan *plan, const uint32_t *count)
{
    const struct mfs_cm_state *s = &h->cm->state;
    uint32_t most = 0;
    char why[160];

    if (!mfs_failback_due(count, plan->count, s->nnodes)) {
        h->settled = s->table->failovers;
        return;
    }
    for (uint32_t i = 1; i < s->nnodes; i++)
        most = count[i] > count[most] ? i : most;
    snprintf(why, sizeof why,
             "failovers: %s serves %u of %u partitions, and %u are its share; %u move",
             s->node[most].name, count[most], s->nparts, plan->count[most], plan->nmoves);
    begin(h, why);
}

static void consider(struct mfs_failback *h)
{
    const struct mfs_cm_state *s = &h->cm->state;
    uint32_t *count = calloc(s->nnodes, sizeof *count);
    struct mfs_plan plan;
    struct mfs_err err;
    int rc = count ? mfs_scale_plan(h->cm, false, &plan, &err) : 0;

    if (rc)
        mfs_pause_begin(&h->pause, h->cm, "rebalance-refused", err.msg);
    if (count && !rc) {
        for (uint32_t i = 0; i < s->nnodes; i++)
            count[i] = mfs_cm_state_count(s, s->node[i].id);
        compare(h, &plan, count);
        mfs_planner_clear(&plan);
    }
    free(count);
}

static void tick(void *arg)
{
    struct mfs_failback *h = arg;
    int64_t now = mfs_clock_mono();

    if (!is_calm(h->cm) || h->cm->state.table->failovers == h->settled) {
        h->calm_since = 0;
        return;
    }
    if (!h->calm_since)
        h->calm_since = now;
    if (now - h->calm_since >= CALM && now >= h->pause.until)
        consider(h);
}

int mfs_failback_init(struct mfs_cm *cm)
{
    struct mfs_failback *h;

    if (cm->state.balancing.off || !cm->state.replicas)
        return 0;
    h = cm->failback = calloc(1, sizeof *h);
    if (!h)
        return -ENOMEM;
    h->cm = cm;
    h->timer = mfs_loop_timer(cm->loop, LOOK, LOOK, tick, h);
    return h->timer ? 0 : -ENOMEM;
}

void mfs_failback_fini(struct mfs_cm *cm)
{
    if (!cm->failback)
        return;
    mfs_timer_cancel(cm->failback->timer);
    free(cm->failback);
    cm->failback = NULL;
}
