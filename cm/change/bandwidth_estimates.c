/* What links carry, as observed: reports go to the estimator, and each second its findings into the
 * nodes (`bandwidth`, "observed"). A finding is never above what the operator has configured, and
 * is saved only when it differs by more than a little, so that cm.json is not written each second.
 */
#include "cm/change/bandwidth_estimates.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/plan/estimator.h"
#include "cm/state/events.h"
#include "cm/state/weights.h"

#define LOOK   MFS_SEC
#define CHANGE 0.05 /* of the former: less is not noted */
#define SLACK  0.1  /* of what was configured: so much less is no other finding */
#define NEWS   0.2  /* of the former: less is no event */

struct mfs_bandwidth_estimates {
    struct mfs_cm *cm;
    struct mfs_timer *timer;
    struct mfs_estimator *estimator;
};

static double now(void)
{
    return (double)mfs_clock_mono() / (double)MFS_SEC;
}

void mfs_bandwidth_estimates_reported(struct mfs_cm *cm, const struct mfs_node *n,
                                      const struct mfs_msg_report *m)
{
    struct mfs_estimator *e = cm->bandwidth_estimates->estimator;

    if (!mfs_estimator_add(e, n->record->id))
        mfs_estimator_report(e, now(), n->record->id, m->bandwidth_in, m->bandwidth_out, m->peer,
                             m->npeers);
}

void mfs_bandwidth_estimates_forget(struct mfs_cm *cm, const struct mfs_node *n)
{
    if (cm->bandwidth_estimates)
        mfs_estimator_remove(cm->bandwidth_estimates->estimator, n->record->id);
}

/* ---- what is known --------------------------------------------------------------------------- */

static bool differ(double a, double b, double part)
{
    return fabs(a - b) > part * fmax(a, b);
}

static double configured(const struct mfs_cm *cm, const struct mfs_cm_node *n)
{
    double rate = 0;

    mfs_weights_configured(cm->state.bandwidth, n->slot, &rate, NULL); /* it has been checked */
    return rate;
}

/* What an earlier cm or a probe has put into the node since the last look. */
static void adopt(struct mfs_bandwidth_estimates *b, struct mfs_node *n)
{
    if (n->record->bandwidth != n->bandwidth_known &&
        strcmp(n->record->bandwidth_from, MFS_BANDWIDTH_CONFIGURED) != 0)
        mfs_estimator_recall(b->estimator, n->record->id, n->record->bandwidth);
    n->bandwidth_known = n->record->bandwidth;
}

static const char *origin(const struct mfs_cm_node *n, double rate, double ceiling)
{
    if (rate <= 0)
        return "";
    if (rate == ceiling)
        return MFS_BANDWIDTH_CONFIGURED;
    if (!strcmp(n->bandwidth_from, MFS_BANDWIDTH_PROBED) && !differ(rate, n->bandwidth, CHANGE))
        return MFS_BANDWIDTH_PROBED;
    return MFS_BANDWIDTH_OBSERVED;
}

static void tell(const struct mfs_cm *cm, const struct mfs_cm_node *n, double rate)
{
    char was[32] = "unknown";

    if (n->bandwidth > 0)
        snprintf(was, sizeof was, "%s/s", MFS_TEXT_BYTES((uint64_t)n->bandwidth));
    if (rate > 0)
        mfs_event_add(cm->paths->events, n->name, "bandwidth", "its link carries %s/s (was %s)",
                      MFS_TEXT_BYTES((uint64_t)rate), was);
    else
        mfs_event_add(cm->paths->events, n->name, "bandwidth",
                      "what its link carries is unknown (was %s)", was);
}

/* Returns whether that is a change to be kept. */
static bool take(struct mfs_bandwidth_estimates *b, struct mfs_node *n)
{
    double rate = mfs_estimator_capacity(b->estimator, n->record->id),
           most = configured(b->cm, n->record);
    const char *from;

    if (most > 0 && (rate <= 0 || rate > (1 - SLACK) * most))
        rate = most;
    from = origin(n->record, rate, most);
    if (!differ(rate, n->record->bandwidth, CHANGE) && !strcmp(from, n->record->bandwidth_from))
        return false;
    if (differ(rate, n->record->bandwidth, NEWS))
        tell(b->cm, n->record, rate);
    n->record->bandwidth = n->bandwidth_known = rate;
    mfs_text_copy(n->record->bandwidth_from, sizeof n->record->bandwidth_from, from);
    return true;
}

static void look(void *arg)
{
    struct mfs_bandwidth_estimates *b = arg;
    struct mfs_cm *cm = b->cm;
    bool changed = false;
    int rc;

    if (!mfs_cm_in_phase(cm, MFS_PHASE_RUNNING) || cm->step != MFS_STEP_DONE)
        return;
    mfs_estimator_look(b->estimator, now());
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        if (mfs_estimator_add(b->estimator, cm->nodes[i]->record->id))
            continue;
        adopt(b, cm->nodes[i]);
        changed |= take(b, cm->nodes[i]);
    }
    rc = changed ? mfs_cm_state_note(&cm->state, cm->paths->state) : 0;
    if (rc)
        mfs_error("bandwidth", "%s: %s", cm->paths->state, strerror(-rc));
}

/* ---- life ------------------------------------------------------------------------------------ */

int mfs_bandwidth_estimates_init(struct mfs_cm *cm)
{
    struct mfs_bandwidth_estimates *b = calloc(1, sizeof *b);

    if (!b)
        return -ENOMEM;
    b->cm = cm;
    cm->bandwidth_estimates = b;
    b->estimator = mfs_estimator_create();
    b->timer = mfs_loop_timer(cm->loop, LOOK, LOOK, look, b);
    return b->estimator && b->timer ? 0 : -ENOMEM;
}

void mfs_bandwidth_estimates_fini(struct mfs_cm *cm)
{
    if (!cm->bandwidth_estimates)
        return;
    mfs_timer_cancel(cm->bandwidth_estimates->timer);
    mfs_estimator_destroy(cm->bandwidth_estimates->estimator);
    free(cm->bandwidth_estimates);
    cm->bandwidth_estimates = NULL;
}
