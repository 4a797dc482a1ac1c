/* Moves partitions when links have changed, and off a node that is nearly full, by itself.
 *
 * Each second picture_take() reads what nodes hold and what links carry;
 * mfs_rebalance_policy_watch() says whether it is time to plan, and the plan is weighed. A plan
 * that is worth it becomes a change as `cm rebalance` would begin it (under_way until it is done);
 * one that is not is weighed again after AGAIN, and one that fails after a pause that grows. At
 * most one change of ours is under way, and none begins while something else excludes it
 * (mfs_cm_exclusive). */
#include "cm/change/auto_rebalance.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cluster/capacity.h"
#include "cm/change/autoscale.h"
#include "cm/plan/lower_bound.h"
#include "cm/partitions/replicas.h"
#include "cm/state/events.h"
#include "cm/change/pause.h"
#include "cm/plan/rebalance_policy.h"
#include "cm/plan/relief.h"
#include "cm/change/scale/impl.h"
#include "cm/state/weights.h"

#define LOOK         MFS_SEC
#define AGAIN        (5 * MFS_SEC) /* until a plan that was not worth it is weighed again */
#define REPORT_AGAIN (300 * MFS_SEC)
#define RELIEF       (5 * MFS_SEC) /* after the last look that found a node to relieve, and its end */
#define RELIEF_AGAIN (20 * MFS_SEC) /* when nothing could be moved */
#define AHEAD        3              /* looks: a plan and the first moves take so long */
#define LATELY       0.1            /* of the traffic's mean: each second's part */
#define FASTER       0.02 /* of its room, by which the fullest node grows in AHEAD looks */
#define FULL         0.85 /* of its rate: a link carries no more, but for what is seen late */

struct mfs_auto_rebalance {
    struct mfs_cm *cm;
    struct mfs_timer *timer;
    bool by_bandwidth; /* shares may be: links are watched */
    struct mfs_rebalance_settings numbers;
    struct mfs_rebalance_policy *watch;
    double traffic;         /* bytes/s, a mean */
    double full;            /* 0..1, a mean: the link that sets the pace is full */
    bool full_now;          /* it was at the last look */
    int64_t next;           /* no plan before */
    int64_t declined_at;    /* that it was not worth it */
    int64_t relief_until;   /* room is being made, or writers have yet to go on */
    bool relieving;         /* our own change is to make room */
    int64_t relief_next;    /* none is made before */
    struct mfs_pause pause; /* after failures */
    bool under_way;         /* our own change */
    double fullest;         /* node, at the last look, … */
    double ahead;           /* … and how full it will be soon, if it goes on like this */
    int64_t looked;
};

/* The nodes, as they are just now. */
struct picture {
    uint32_t n;
    const struct mfs_cm_node **node;
    uint32_t *id;
    double *bandwidth;
    bool *limit; /* bandwidth is that */
    double fullest, all;
    bool there; /* every node is, and has reported */
    bool whole; /* and what links carry is known or seen */
    bool known; /* of one node at least */
};

static void picture_clear(struct picture *p)
{
    free(p->node);
    free(p->id);
    free(p->bandwidth);
    free(p->limit);
    *p = (struct picture){0};
}

/* What partitions need beyond their data counts as used, as writers are refused without. */
static double needed(const struct mfs_cm *cm, double bytes, uint32_t parts)
{
    return bytes + (double)parts * MFS_CAPACITY_NEXT_WRITES * cm->state.stripe_size;
}

/* Nothing is known of any link (any more): what was moved for a difference goes back. */
static void count_as_alike(struct picture *p)
{
    double most = 0;

    for (uint32_t i = 0; i < p->n; i++)
        most = fmax(most, p->node[i]->bandwidth_seen);
    for (uint32_t i = 0; i < p->n; i++)
        p->bandwidth[i] = most;
}

static int picture_take(const struct mfs_cm *cm, struct picture *p)
{
    double used = 0, capacity = 0;

    *p = (struct picture){.n = cm->state.nnodes, .there = true};
    p->node = calloc(p->n, sizeof(const struct mfs_cm_node *));
    p->id = calloc(p->n, sizeof *p->id);
    p->bandwidth = calloc(p->n, sizeof *p->bandwidth);
    p->limit = calloc(p->n, sizeof *p->limit);
    if (!p->node || !p->id || !p->bandwidth || !p->limit) {
        picture_clear(p);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < p->n; i++) {
        const struct mfs_node *node = cm->nodes[i];
        double takes = needed(cm, (double)node->last.memory_used, node->parts_seen);

        p->node[i] = &cm->state.node[i];
        p->id[i] = node->record->id;
        p->limit[i] = node->record->bandwidth > 0;
        p->there &= node->conn && node->reported && node->last.memory_capacity;
        used += takes;
        capacity += (double)node->last.memory_capacity;
        p->fullest = fmax(p->fullest, takes / fmax((double)node->last.memory_capacity, 1));
    }
    p->all = used / fmax(capacity, 1);
    mfs_weights_bandwidth(p->node, p->n, p->bandwidth);
    p->known = p->bandwidth[0] > 0;
    if (!p->known)
        count_as_alike(p);
    p->whole = p->there && p->bandwidth[0] > 0;
    return 0;
}

/* NULL: ENOMEM. The caller frees it. */
static uint32_t *counts_now(const struct mfs_cm *cm, const struct picture *p)
{
    uint32_t *count = calloc(p->n, sizeof *count);

    for (uint32_t i = 0; count && i < p->n; i++)
        count[i] = mfs_cm_state_count(&cm->state, p->id[i]);
    return count;
}

static bool last_is_full(const struct mfs_cm *cm, const struct picture *p)
{
    uint32_t *count = counts_now(cm, p);
    const struct mfs_msg_report *r;
    size_t last;

    if (!count)
        return false;
    last = mfs_rebalance_last(count, p->bandwidth, p->n);
    free(count);
    r = &cm->nodes[last]->last;
    return p->known && fmax(r->bandwidth_in, r->bandwidth_out) > FULL * p->bandwidth[last];
}

/* What nodes receive is what nodes send, but for what goes elsewhere. */
static void take_traffic(struct mfs_auto_rebalance *a, const struct picture *p)
{
    double in = 0, out = 0;

    for (uint32_t i = 0; i < a->cm->state.nnodes; i++) {
        in += a->cm->nodes[i]->last.bandwidth_in;
        out += a->cm->nodes[i]->last.bandwidth_out;
    }
    a->traffic += (fmax(in, out) - a->traffic) * LATELY;
    a->full_now = last_is_full(a->cm, p);
    a->full += (a->full_now - a->full) * LATELY;
}

/* ---- a plan's worth -------------------------------------------------------------------------- */

static double rate_of(const void *arg, uint32_t node)
{
    const struct picture *p = arg;

    for (uint32_t i = 0; i < p->n; i++)
        if (p->id[i] == node)
            return p->bandwidth[i];
    return 0;
}

static double pace_now(const struct mfs_cm *cm, const struct picture *p)
{
    uint32_t *count = counts_now(cm, p);
    double pace = count ? mfs_rebalance_pace(count, p->bandwidth, p->n, cm->state.nparts) : 0;

    free(count);
    return pace;
}

/* Seconds that the moves take of the link that they need most, and what crosses links in all: data,
 * without what a process has used before it holds any. Negative: ENOMEM. */
static double busiest_link(const struct mfs_plan *plan, const struct picture *p, uint64_t *bytes)
{
    struct mfs_scale_move *move = calloc(plan->nmoves + 1, sizeof *move);
    double busiest;

    *bytes = 0;
    if (!move)
        return -ENOMEM;
    for (uint32_t i = 0; i < plan->nmoves; i++) {
        move[i] = plan->move[i];
        move[i].bytes -= move[i].bytes < MFS_CAPACITY_EMPTY ? move[i].bytes : MFS_CAPACITY_EMPTY;
        *bytes += move[i].bytes;
    }
    busiest = mfs_lower_bound_links(move, plan->nmoves, rate_of, p);
    free(move);
    return busiest;
}

/* For most of the time of late. Copies beside what waits for that link would not get on: it has
 * many connections. So those partitions are fenced for their copies' time, all of them at once, and
 * the link is free for these. */
static bool is_full(const struct mfs_auto_rebalance *a)
{
    return a->full > 0.5;
}

/* It may be full only for a moment, or have become so just now. To be waited for: a hot copy that
 * meets a full link is under way for minutes. */
static bool may_be_full(const struct mfs_auto_rebalance *a)
{
    return a->full_now && !is_full(a);
}

static void weigh(const struct mfs_auto_rebalance *a, const struct picture *p,
                  const struct mfs_plan *plan, struct mfs_rebalance_verdict *v)
{
    const struct mfs_cm_state *st = &a->cm->state;
    struct mfs_rebalance_figures f = {
        .before = pace_now(a->cm, p),
        .after = mfs_rebalance_pace(plan->count, p->bandwidth, p->n, st->nparts),
        .traffic = a->traffic,
        .full = is_full(a),
        .moves = plan->nmoves,
        .cold = !strcmp(st->migration, "cold")};

    f.busiest = busiest_link(plan, p, &f.bytes);
    *v = (struct mfs_rebalance_verdict){0};
    if (f.before > 0 && f.busiest >= 0)
        mfs_rebalance_weigh(&a->numbers, &f, v);
}

/* ---- doing it -------------------------------------------------------------------------------- */

static void hold_off(struct mfs_auto_rebalance *a, const char *what, const char *why)
{
    mfs_pause_begin(&a->pause, a->cm, what, why);
    a->next = a->pause.until;
}

/* Where none could move, as what is to come finds no room beside what is to go, it would be the
 * same a second later. */
static void relieved(struct mfs_auto_rebalance *a, const struct mfs_scale_report *r)
{
    int64_t now = mfs_clock_mono();

    if (!a->relieving)
        return;
    a->relieving = false;
    if (r && r->partitions_moved)
        a->relief_until = now + RELIEF;
    else
        a->relief_next = now + RELIEF_AGAIN;
}

static void done(void *arg, const struct mfs_err *err, const struct mfs_scale_report *r)
{
    struct mfs_auto_rebalance *a = arg;

    a->under_way = false;
    relieved(a, r);
    if (mfs_cm_in_phase(a->cm, MFS_PHASE_STOPPING))
        return;
    if (err) {
        mfs_rebalance_policy_failed(a->watch);
        hold_off(a, "rebalance-failed", err->msg);
    } else {
        a->pause = (struct mfs_pause){0};
    }
}

/* False: another time. */
static bool begin(struct mfs_auto_rebalance *a, const char *how, bool at_once, const char *why)
{
    struct mfs_msg_scale what = {.at_once = at_once};
    struct mfs_err err = {0};
    int rc;

    mfs_text_copy(what.how, sizeof what.how, how);
    if (at_once)
        mfs_text_copy(what.migration, sizeof what.migration, "cold");
    a->under_way = true;
    rc = mfs_scale_begin(a->cm, &what, why, done, a, &err);
    if (!rc)
        return true;
    a->under_way = false;
    if (rc != -EBUSY && rc != -EAGAIN) /* else the next second will do */
        hold_off(a, "rebalance-refused", err.msg);
    return false;
}

static void have_writers_wait(struct mfs_auto_rebalance *a, int64_t ns)
{
    int64_t until = mfs_clock_mono() + ns;

    if (a->relief_until < until)
        a->relief_until = until;
    mfs_autoscale_tell(a->cm);
}

/* The fullest node will have to give at the next look. */
static bool fills_quickly(const struct mfs_auto_rebalance *a, const struct picture *p)
{
    return a->ahead > p->fullest + FASTER;
}

static void relieve(struct mfs_auto_rebalance *a, const struct picture *p,
                    const struct mfs_plan *plan)
{
    char why[256];

    if (!plan->nmoves && fills_quickly(a, p)) {
        have_writers_wait(a, 2 * LOOK);
        return;
    }
    if (!plan->nmoves)
        return;
    have_writers_wait(a, RELIEF);
    snprintf(
        why, sizeof why,
        "memory: the fullest node is at %.1f %%, all together at %.1f %%: %s, %s, can go where "
        "room is",
        100 * p->fullest, 100 * p->all, MFS_TEXT_COUNT(plan->nmoves, "partition"),
        MFS_TEXT_BYTES(plan->bytes));
    a->relieving = begin(a, MFS_SCALE_RELIEVE, false, why);
}

static void report_declined(struct mfs_auto_rebalance *a, const char *why)
{
    if (a->declined_at && mfs_clock_mono() < a->declined_at + REPORT_AGAIN)
        return;
    a->declined_at = mfs_clock_mono();
    mfs_event_add(a->cm->paths->events, "cm", "rebalance-not-worth", "%s", why);
}

static void follow(struct mfs_auto_rebalance *a, const struct picture *p,
                   const struct mfs_plan *plan)
{
    struct mfs_rebalance_verdict v;
    char why[MFS_TEXT_MAX], who[96] = "";
    double times;
    uint32_t id;

    weigh(a, p, plan, &v);
    if (mfs_rebalance_policy_changed(a->watch, &id, &times))
        snprintf(who, sizeof who,
                 "node-%u has %.2f times the part of all bandwidth that it had: ", id, times);
    snprintf(why, sizeof why, "bandwidth: %s%s", who, v.why);
    if (!v.better || (v.worth && begin(a, "rebalance", is_full(a), why))) {
        mfs_rebalance_policy_planned(a->watch);
        a->declined_at = 0;
    } else if (!v.worth) {
        report_declined(a, why);
    }
}

static void consider_links(struct mfs_auto_rebalance *a, const struct picture *p)
{
    struct mfs_plan plan;
    struct mfs_err err;

    if (mfs_scale_plan(a->cm, false, &plan, &err)) {
        hold_off(a, "rebalance-refused", err.msg);
        return;
    }
    follow(a, p, &plan);
    mfs_planner_clear(&plan);
    if (!a->under_way && a->next < mfs_clock_mono() + AGAIN)
        a->next = mfs_clock_mono() + AGAIN;
}

/* At each look, as writers may be waiting. That nothing helps a full node is nothing to tell. */
static void consider_room(struct mfs_auto_rebalance *a, const struct picture *p)
{
    struct mfs_plan plan;
    struct mfs_err err;

    if (mfs_scale_plan(a->cm, true, &plan, &err))
        return;
    relieve(a, p, &plan);
    mfs_planner_clear(&plan);
}

/* A partition that moves gives its replica up, for another one to be made. So where there are
 * replicas, these leave a full node, by themselves: it holds about as many as partitions. */
static void consider_replicas(struct mfs_auto_rebalance *a, const struct picture *p, int64_t now)
{
    if (mfs_replicas_spread(a->cm, now))
        have_writers_wait(a, RELIEF);
    else if (fills_quickly(a, p))
        have_writers_wait(a, 2 * LOOK);
}

static double soon(struct mfs_auto_rebalance *a, double fullest)
{
    int64_t now = mfs_clock_mono(), passed = now - a->looked;
    double grown = passed < 2 * LOOK ? fmax(fullest - a->fullest, 0) : 0;

    a->looked = now;
    a->fullest = fullest;
    a->ahead = fullest + grown * AHEAD;
    return a->ahead;
}

static bool links_changed(struct mfs_auto_rebalance *a, const struct picture *p)
{
    const struct mfs_rebalance_view v = {(double)mfs_clock_mono() / (double)MFS_SEC, p->n, p->id,
                                         p->bandwidth, p->limit};
    bool due = mfs_rebalance_policy_watch(a->watch, &a->numbers, &v);

    take_traffic(a, p);
    return due && !may_be_full(a);
}

static void look(struct mfs_auto_rebalance *a, const struct picture *p)
{
    bool crowded = mfs_relief_crowded(soon(a, p->fullest), p->all),
         due = p->whole && a->by_bandwidth && links_changed(a, p);
    int64_t now = mfs_clock_mono();

    if (crowded && a->cm->state.replicas)
        consider_replicas(a, p, now);
    else if (crowded && now >= a->pause.until && now >= a->relief_next)
        consider_room(a, p);
    if (due && !a->under_way && now >= a->next)
        consider_links(a, p);
}

/* What it holds is on its way to the others: nothing is to come back to it. */
static bool one_leaves(const struct mfs_cm *cm)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (cm->state.node[i].leave_by)
            return true;
    return false;
}

static bool may_act(const struct mfs_cm *cm)
{
    return mfs_cm_in_phase(cm, MFS_PHASE_RUNNING) && cm->step == MFS_STEP_DONE && cm->state.table &&
           !mfs_cm_exclusive(cm) && !one_leaves(cm);
}

static void tick(void *arg)
{
    struct mfs_auto_rebalance *a = arg;
    struct picture p;

    if (!may_act(a->cm) || picture_take(a->cm, &p))
        return;
    if (p.there)
        look(a, &p);
    picture_clear(&p);
}

bool mfs_auto_rebalance_relieves(const struct mfs_cm *cm)
{
    const struct mfs_auto_rebalance *a = cm->auto_rebalance;

    return a && (a->relieving || mfs_clock_mono() < a->relief_until);
}

int mfs_auto_rebalance_init(struct mfs_cm *cm)
{
    struct mfs_auto_rebalance *a;

    if (cm->state.balancing.off)
        return 0;
    a = calloc(1, sizeof *a);
    if (!a)
        return -ENOMEM;
    cm->auto_rebalance = a;
    a->cm = cm;
    a->by_bandwidth = strcmp(cm->state.weights, MFS_WEIGHTS_MEMORY) != 0;
    a->numbers = mfs_rebalance_settle(&cm->state.balancing);
    a->watch = mfs_rebalance_policy_create();
    a->timer = mfs_loop_timer(cm->loop, LOOK, LOOK, tick, a);
    return a->timer && a->watch ? 0 : -ENOMEM;
}

void mfs_auto_rebalance_fini(struct mfs_cm *cm)
{
    if (!cm->auto_rebalance)
        return;
    mfs_timer_cancel(cm->auto_rebalance->timer);
    mfs_rebalance_policy_destroy(cm->auto_rebalance->watch);
    free(cm->auto_rebalance);
    cm->auto_rebalance = NULL;
}
