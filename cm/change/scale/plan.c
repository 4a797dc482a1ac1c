/* What a change of nodes would be: the request is checked, nodes are chosen, and the planner gives
 * the moves, with the lower bound of their time. Nothing is changed: a draft is what a dry run
 * shows, and what a change begins with. */
#include "cm/change/scale/impl.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cluster/capacity.h"
#include "cm/plan/lower_bound.h"
#include "cm/state/spec.h"
#include "cm/state/weights.h"

#define UNEVEN 0.8 /* up to here nodes may be fuller than others as bandwidth has it */
#define APART  0.05

/* ---- room ------------------------------------------------------------------------------------ */

/* For content, with n partitions, each of them `each` times: of what processes may use, replicas
 * take their part, and with them some has to stay free. */
static uint64_t room_with(const struct mfs_cm_node *n, uint32_t parts, uint32_t each)
{
    uint64_t usable = mfs_capacity_used(n->memory, parts * each);

    return each == 1 ? usable : mfs_capacity_replicated(usable) / each;
}

static uint64_t room_of(const struct mfs_cm *cm, const struct mfs_cm_node *n)
{
    return room_with(n, mfs_cm_state_count(&cm->state, n->id), 1 + cm->state.replicas);
}

/* With as many partitions as it will have about, when it has that part of them. */
static uint64_t room_then(const struct mfs_cm *cm, const struct mfs_cm_node *n, double part,
                          uint32_t each)
{
    return room_with(n, (uint32_t)ceil((double)cm->state.nparts * part), each);
}

/* ---- which nodes and partitions it is about -------------------------------------------------- */

/* A drain passes over nodes that are not there, and leaves what they have with them. */
static bool takes_part(const struct mfs_cm *cm, const struct mfs_scale_draft *d, uint32_t i)
{
    return !d->drain || mfs_scale_is_there(cm->nodes[i]);
}

static bool takes_part_of(const struct mfs_cm *cm, const struct mfs_scale_draft *d, uint32_t id)
{
    const struct mfs_node *n = d->drain ? mfs_nodes_find(cm, id) : NULL;

    return !d->drain || (n && mfs_scale_is_there(n));
}

static bool stays(const struct mfs_cm *cm, const struct mfs_scale_draft *d, uint32_t i)
{
    return takes_part(cm, d, i) && !mfs_scale_leaves(d, &cm->state.node[i]);
}

static uint64_t used_bytes(const struct mfs_cm *cm, const struct mfs_scale_draft *d)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < cm->state.nparts; i++)
        if (takes_part_of(cm, d, cm->state.part[i].node))
            sum += cm->part_bytes[i];
    return sum;
}

/* ---- checks ---------------------------------------------------------------------------------- */

const struct mfs_node *mfs_scale_silent(const struct mfs_cm *cm)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (!cm->nodes[i]->conn || !cm->nodes[i]->reported)
            return cm->nodes[i];
    return NULL;
}

const struct mfs_node *mfs_scale_filled(const struct mfs_cm *cm)
{
    const struct mfs_cm_state *st = &cm->state;

    for (uint32_t i = 0; i < st->nnodes; i++)
        if (!strcmp(st->node[i].transition, MFS_NODE_LEAVING) &&
            mfs_cm_state_count(st, st->node[i].id))
            return cm->nodes[i];
    return NULL;
}

static int choose_migration(const struct mfs_cm *cm, const struct mfs_msg_scale *what,
                            struct mfs_scale_draft *d, struct mfs_err *err)
{
    const char *how = what->migration[0] ? what->migration : cm->state.migration;

    d->cold = !strcmp(how, "cold");
    d->at_once = what->at_once;
    d->rate = what->rate ? what->rate : cm->state.rate;
    if (!d->cold && strcmp(how, "hot"))
        return mfs_err_set(err, -EINVAL, "migration: \"%s\" is neither hot nor cold", how);
    return 0;
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* Nodes and their weights, as parts of 1; of those that leave, which come last, 0. */
struct parties {
    const struct mfs_cm_node **node;
    double *weight;
    uint32_t n, staying;
    bool by_bandwidth;
};

static void parties_clear(struct parties *p)
{
    free(p->node);
    free(p->weight);
    *p = (struct parties){0};
}

static void add_nodes(const struct mfs_cm *cm, const struct mfs_scale_draft *d, bool leaving,
                      struct parties *p)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (mfs_scale_leaves(d, &cm->state.node[i]) == leaving && takes_part(cm, d, i))
            p->node[p->n++] = &cm->state.node[i];
}

static int parties_make(const struct mfs_cm *cm, const struct mfs_scale_draft *d, struct parties *p)
{
    const struct mfs_cm_state *st = &cm->state;
    uint32_t all = st->nnodes + d->ncoming;
    double sum = 0;

    *p = (struct parties){calloc(all, sizeof(const struct mfs_cm_node *)),
                          calloc(all, sizeof *p->weight), 0, 0, false};
    if (!p->node || !p->weight) {
        parties_clear(p);
        return -ENOMEM;
    }
    add_nodes(cm, d, false, p);
    for (uint32_t i = 0; i < d->ncoming; i++)
        p->node[p->n++] = &d->coming[i];
    p->staying = p->n;
    add_nodes(cm, d, true, p);
    p->by_bandwidth = mfs_weights_make(st, p->node, p->staying, used_bytes(cm, d), p->weight);
    for (uint32_t i = 0; i < p->staying; i++)
        sum += p->weight[i];
    for (uint32_t i = 0; i < p->staying; i++)
        p->weight[i] /= sum;
    return 0;
}

/* The partitions of the parties; index[i] is the number of part[i]. */
static uint32_t list_parts(const struct mfs_cm *cm, const struct mfs_scale_draft *d,
                           struct mfs_plan_part *part, uint32_t *index)
{
    const struct mfs_cm_state *st = &cm->state;
    uint32_t n = 0;

    for (uint32_t i = 0; i < st->nparts; i++) {
        if (!takes_part_of(cm, d, st->part[i].node))
            continue;
        part[n] = (struct mfs_plan_part){st->part[i].node, cm->part_bytes[i]};
        index[n++] = i;
    }
    return n;
}

/* Nodes come as memory gets short: then all should be full at the same time, which is worth it that
 * more than the least bytes are moved. */
static bool fills_up(const struct mfs_cm *cm, const struct mfs_scale_draft *d)
{
    uint64_t room = 0;

    for (uint32_t i = 0; i < d->from; i++)
        room += room_of(cm, &cm->state.node[i]);
    return d->to > d->from && used_bytes(cm, d) > room / 2;
}

/* With memory for each partition `each` times, and every node full to that part at most. */
static int plan_parties(const struct mfs_cm *cm, const struct mfs_scale_draft *d,
                        const struct parties *p, uint32_t each, double full, struct mfs_plan *out,
                        struct mfs_err *err)
{
    uint32_t nparts = cm->state.nparts, *index = calloc(nparts, sizeof *index);
    struct mfs_plan_node *node = calloc(p->n, sizeof *node);
    struct mfs_plan_part *part = calloc(nparts, sizeof *part);
    struct mfs_plan_input in = {node, p->n, part, 0, 0, fills_up(cm, d)};
    int rc = -ENOMEM;

    if (node && part && index) {
        for (uint32_t i = 0; i < p->n; i++)
            node[i] = (struct mfs_plan_node){
                p->node[i]->id, p->weight[i],
                (uint64_t)(full * (double)room_then(cm, p->node[i], p->weight[i], each))};
        in.nparts = list_parts(cm, d, part, index);
        rc = mfs_planner_plan(&in, out, err);
        for (uint32_t i = 0; i < out->nmoves && !rc; i++)
            out->move[i].index = index[out->move[i].index];
    } else {
        mfs_err_set(err, rc, "out of memory");
    }
    free(node);
    free(part);
    free(index);
    return rc;
}

/* So full a node may be that has what is due to its bandwidth: little more than all together. (Each
 * time that it gave some away it has kept its larger partitions.) */
static double even(const struct mfs_cm *cm, const struct mfs_scale_draft *d,
                   const struct parties *p, uint32_t each)
{
    double room = 0;

    for (uint32_t i = 0; i < p->staying; i++)
        room += (double)room_then(cm, p->node[i], p->weight[i], each);
    return fmin(1, fmax(UNEVEN, (double)used_bytes(cm, d) / fmax(room, 1) + APART));
}

static int plan(const struct mfs_cm *cm, const struct mfs_scale_draft *d, uint32_t each,
                struct mfs_plan *out, struct mfs_err *err)
{
    struct parties p;
    int rc = parties_make(cm, d, &p);

    if (rc)
        return mfs_err_set(err, rc, "out of memory");
    rc = p.by_bandwidth ? plan_parties(cm, d, &p, each, even(cm, d, &p, each), out, err) : -ENOSPC;
    if (rc == -ENOSPC) {
        mfs_planner_clear(out);
        rc = plan_parties(cm, d, &p, each, 1, out, err);
    }
    parties_clear(&p);
    return rc;
}

/* With room for all replicas. Where there is none whatever is done, which no node's leaving is the
 * reason for, partitions come first, and some will go without. */
static int plan_twice(const struct mfs_cm *cm, const struct mfs_scale_draft *d,
                      struct mfs_plan *out, struct mfs_err *err)
{
    int rc = d->by_bytes ? mfs_scale_plan_relief(cm, out, err)
                         : plan(cm, d, 1 + cm->state.replicas, out, err);

    if (rc == -ENOSPC && cm->state.replicas && (!d->nleaving || d->urgent)) {
        mfs_planner_clear(out);
        rc = plan(cm, d, 1, out, err);
    }
    if (rc == -ENOSPC && d->urgent) {
        mfs_planner_clear(out);
        rc = mfs_scale_plan_some(cm, d, out, err);
    }
    return rc;
}

int mfs_scale_plan(const struct mfs_cm *cm, bool by_bytes, struct mfs_plan *out,
                   struct mfs_err *err)
{
    const struct mfs_cm_scale *sc = &cm->state.scale;
    struct mfs_scale_draft d = {.from = sc->from,
                                .to = sc->to,
                                .drain = sc->drain,
                                .urgent = sc->urgent,
                                .by_bytes = by_bytes};

    *out = (struct mfs_plan){0};
    return plan_twice(cm, &d, out, err);
}

static void sum_up(const struct mfs_cm *cm, struct mfs_scale_draft *d)
{
    d->used = used_bytes(cm, d);
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (takes_part(cm, d, i))
            d->capacity += room_of(cm, &cm->state.node[i]);
}

/* Of the nodes that stay or come, each with a part of the partitions as of the memory. */
static uint64_t room_of_staying(const struct mfs_cm *cm, const struct mfs_scale_draft *d)
{
    double memory = 0;
    uint64_t room = 0;

    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (stays(cm, d, i))
            memory += (double)cm->state.node[i].memory;
    for (uint32_t i = 0; i < d->ncoming; i++)
        memory += (double)d->coming[i].memory;
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (stays(cm, d, i))
            room += room_then(cm, &cm->state.node[i], (double)cm->state.node[i].memory / memory,
                              1 + cm->state.replicas);
    for (uint32_t i = 0; i < d->ncoming; i++)
        room += room_then(cm, &d->coming[i], (double)d->coming[i].memory / memory,
                          1 + cm->state.replicas);
    return room;
}

/* The planner refuses, too; this says it in the words of the command. */
static int check_room(const struct mfs_cm *cm, const struct mfs_scale_draft *d, struct mfs_err *err)
{
    uint64_t room = d->nleaving ? room_of_staying(cm, d) : 0;

    if (!d->nleaving || d->used <= room)
        return 0;
    return mfs_err_set(err, -ENOSPC,
                       "%s can't hold the data: %s (%llu bytes) are used, and those that "
                       "stay have room for %s (%llu bytes)",
                       MFS_TEXT_COUNT(d->to, "node"), MFS_TEXT_BYTES(d->used),
                       (unsigned long long)d->used, MFS_TEXT_BYTES(room), (unsigned long long)room);
}

/* Nodes that are named may hold anything, so of a drain the moves tell. */
static double lower_bound_ms(const struct mfs_cm *cm, const struct mfs_scale_draft *d)
{
    double rate = (double)cm->state.link_rate, each = (double)d->used / d->from, s;

    if (cm->state.link_rate == 0)
        return 0;
    if (d->to > d->from)
        s = mfs_lower_bound_grow(each, rate, d->from, d->to - d->from);
    else if (d->to < d->from && !d->drain)
        s = mfs_lower_bound_shrink(each, rate, d->from, d->from - d->to);
    else
        s = mfs_lower_bound_moves(d->plan.move, d->plan.nmoves, rate);
    return s > 0 && isfinite(s) ? s * 1e3 : 0;
}

int mfs_scale_draft_make(const struct mfs_cm *cm, const struct mfs_msg_scale *what,
                         struct mfs_scale_draft *d, struct mfs_err *err)
{
    int rc;

    *d = (struct mfs_scale_draft){0};
    rc = mfs_scale_target(cm, what, d, err);
    if (!rc)
        rc = choose_migration(cm, what, d, err);
    if (!rc)
        rc = mfs_scale_check_nodes(cm, d, err);
    if (!rc)
        sum_up(cm, d);
    if (!rc && d->ncoming)
        rc = mfs_spec_check_memory(&cm->state, d->from + d->ncoming, err);
    if (!rc && !d->forget && !d->urgent)
        rc = check_room(cm, d, err);
    if (!rc && (!d->forget || d->ncoming))
        rc = plan_twice(cm, d, &d->plan, err);
    if (rc)
        mfs_scale_draft_clear(d);
    else
        d->lower_bound_ms = lower_bound_ms(cm, d);
    return rc;
}

void mfs_scale_draft_clear(struct mfs_scale_draft *d)
{
    free(d->coming);
    free(d->leaving);
    free(d->renewal);
    d->renewal = NULL;
    d->coming = NULL;
    d->leaving = NULL;
    mfs_planner_clear(&d->plan);
}
