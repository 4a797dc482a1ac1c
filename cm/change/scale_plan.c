/* What a change of nodes would be: the request is checked, nodes are chosen, and the planner gives
 * the moves, with the lower bound of their time. Nothing is changed: a draft is what a dry run
 * shows, and what a change begins with. */
#include "cm/change/scale_impl.h"

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

static uint64_t used_bytes(const struct mfs_cm *cm)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < cm->state.nparts; i++)
        sum += cm->part_bytes[i];
    return sum;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool slot_taken(const struct mfs_cm *cm, const struct mfs_scale_draft *d, uint32_t n,
                       uint32_t slot)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (cm->state.node[i].slot == slot)
            return true;
    for (uint32_t i = 0; i < n; i++)
        if (d->coming[i].slot == slot)
            return true;
    return false;
}

static int make_coming(const struct mfs_cm *cm, struct mfs_scale_draft *d, struct mfs_err *err)
{
    uint32_t slot = 0;
    int rc = 0;

    d->coming = calloc(d->ncoming + 1, sizeof *d->coming);
    if (!d->coming)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < d->ncoming && !rc; i++) {
        while (slot_taken(cm, d, i, slot))
            slot++;
        rc = mfs_spec_node(&cm->state, cm->state.next_node + i, slot, &d->coming[i], err);
        mfs_text_copy(d->coming[i].transition, sizeof d->coming[i].transition, MFS_NODE_COMING);
    }
    return rc;
}

static int target(const struct mfs_cm *cm, const struct mfs_msg_scale *what, uint64_t *to,
                  struct mfs_err *err)
{
    uint32_t from = cm->state.nnodes;

    if (!strcmp(what->how, "to"))
        *to = what->n;
    else if (!strcmp(what->how, "out"))
        *to = (uint64_t)from + what->n;
    else if (!strcmp(what->how, "in"))
        *to = what->n < from ? from - what->n : 0;
    else if (!strcmp(what->how, "rebalance"))
        *to = from;
    else
        return mfs_err_set(err, -EINVAL, "\"%s\" is no way of scaling", what->how);
    if (!*to)
        return mfs_err_set(err, -EINVAL, "at least 1 of the %s must stay",
                           MFS_TEXT_COUNT(from, "node"));
    if (*to > cm->state.nparts)
        return mfs_err_set(err, -EINVAL,
                           "%llu nodes need as many partitions, and this deployment has %u for "
                           "ever (cm start --max-nodes)",
                           (unsigned long long)*to, cm->state.nparts);
    return 0;
}

const struct mfs_node *mfs_scale_silent(const struct mfs_cm *cm)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (!cm->nodes[i]->conn || !cm->nodes[i]->reported)
            return cm->nodes[i];
    return NULL;
}

bool mfs_scale_filled(const struct mfs_cm *cm)
{
    const struct mfs_cm_state *st = &cm->state;

    for (uint32_t i = 0; i < st->nnodes; i++)
        if (!strcmp(st->node[i].transition, MFS_NODE_LEAVING) &&
            mfs_cm_state_count(st, st->node[i].id))
            return true;
    return false;
}

/* Nothing is moved to or from a node that is not there. */
static int check_nodes(const struct mfs_cm *cm, struct mfs_err *err)
{
    const struct mfs_node *silent = mfs_scale_silent(cm);

    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        const struct mfs_node *n = cm->nodes[i];
        uint32_t due = mfs_cm_state_count(&cm->state, n->record->id);

        if (!n->conn)
            return mfs_err_set(err, -ENODEV,
                               "%s is not there: its lm is not connected (see cm events)",
                               n->record->name);
        if (mfs_nodes_lacks(n))
            return mfs_err_set(err, -ENODEV,
                               "%s runs %u of its %u partitions; what the others held is lost "
                               "(see cm events)",
                               n->record->name, n->parts_seen, due);
    }
    return silent ? mfs_err_set(err, -EAGAIN, "%s has told no figures yet", silent->record->name)
                  : 0;
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

static bool is_leaving(const struct mfs_cm_state *st, uint32_t i, uint32_t nleaving)
{
    return i + nleaving >= st->nnodes || !strcmp(st->node[i].transition, MFS_NODE_LEAVING);
}

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

/* The last `nleaving` of the state's nodes leave, and those that are marked so. */
static int parties_make(const struct mfs_cm *cm, const struct mfs_cm_node *coming, uint32_t ncoming,
                        uint32_t nleaving, struct parties *p)
{
    const struct mfs_cm_state *st = &cm->state;
    uint32_t all = st->nnodes + ncoming;
    double sum = 0;

    *p = (struct parties){calloc(all, sizeof(const struct mfs_cm_node *)),
                          calloc(all, sizeof *p->weight), 0, 0, false};
    if (!p->node || !p->weight) {
        parties_clear(p);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < st->nnodes; i++)
        if (!is_leaving(st, i, nleaving))
            p->node[p->n++] = &st->node[i];
    for (uint32_t i = 0; i < ncoming; i++)
        p->node[p->n++] = &coming[i];
    p->staying = p->n;
    for (uint32_t i = 0; i < st->nnodes; i++)
        if (is_leaving(st, i, nleaving))
            p->node[p->n++] = &st->node[i];
    p->by_bandwidth = mfs_weights_make(st, p->node, p->staying, used_bytes(cm), p->weight);
    for (uint32_t i = 0; i < p->staying; i++)
        sum += p->weight[i];
    for (uint32_t i = 0; i < p->staying; i++)
        p->weight[i] /= sum;
    return 0;
}

/* With memory for each partition `each` times, and every node full to that part at most. */
static int plan_parties(const struct mfs_cm *cm, const struct parties *p, uint32_t each,
                        double full, struct mfs_plan *out, struct mfs_err *err)
{
    const struct mfs_cm_state *st = &cm->state;
    struct mfs_plan_node *node = calloc(p->n, sizeof *node);
    struct mfs_plan_part *part = calloc(st->nparts, sizeof *part);
    struct mfs_plan_input in = {node, p->n, part, st->nparts, 0};
    int rc = -ENOMEM;

    if (node && part) {
        for (uint32_t i = 0; i < p->n; i++)
            node[i] = (struct mfs_plan_node){
                p->node[i]->id, p->weight[i],
                (uint64_t)(full * (double)room_then(cm, p->node[i], p->weight[i], each))};
        for (uint32_t i = 0; i < st->nparts; i++)
            part[i] = (struct mfs_plan_part){st->part[i].node, cm->part_bytes[i]};
        rc = mfs_planner_plan(&in, out, err);
    } else {
        mfs_err_set(err, rc, "out of memory");
    }
    free(node);
    free(part);
    return rc;
}

/* So full a node may be that has what is due to its bandwidth: little more than all together. (Each
 * time that it gave some away it has kept its larger partitions.) */
static double even(const struct mfs_cm *cm, const struct parties *p, uint32_t each)
{
    double room = 0;

    for (uint32_t i = 0; i < p->staying; i++)
        room += (double)room_then(cm, p->node[i], p->weight[i], each);
    return fmin(1, fmax(UNEVEN, (double)used_bytes(cm) / fmax(room, 1) + APART));
}

static int plan(const struct mfs_cm *cm, const struct mfs_cm_node *coming, uint32_t ncoming,
                uint32_t nleaving, uint32_t each, struct mfs_plan *out, struct mfs_err *err)
{
    struct parties p;
    int rc = parties_make(cm, coming, ncoming, nleaving, &p);

    if (rc)
        return mfs_err_set(err, rc, "out of memory");
    rc = p.by_bandwidth ? plan_parties(cm, &p, each, even(cm, &p, each), out, err) : -ENOSPC;
    if (rc == -ENOSPC) {
        mfs_planner_clear(out);
        rc = plan_parties(cm, &p, each, 1, out, err);
    }
    parties_clear(&p);
    return rc;
}

/* With room for all replicas. Where there is none whatever is done, which no node's leaving is the
 * reason for, partitions come first, and some will go without. */
static int plan_twice(const struct mfs_cm *cm, const struct mfs_cm_node *coming, uint32_t ncoming,
                      uint32_t nleaving, struct mfs_plan *out, struct mfs_err *err)
{
    int rc = plan(cm, coming, ncoming, nleaving, 1 + cm->state.replicas, out, err);

    if (rc != -ENOSPC || nleaving || !cm->state.replicas)
        return rc;
    mfs_planner_clear(out);
    return plan(cm, coming, ncoming, 0, 1, out, err);
}

int mfs_scale_plan(const struct mfs_cm *cm, struct mfs_plan *out, struct mfs_err *err)
{
    *out = (struct mfs_plan){0};
    return plan_twice(cm, NULL, 0, 0, out, err);
}

static void sum_up(const struct mfs_cm *cm, struct mfs_scale_draft *d)
{
    d->used = used_bytes(cm);
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        d->capacity += room_of(cm, &cm->state.node[i]);
}

/* The planner refuses, too; this says it in the words of the command. */
static int check_room(const struct mfs_cm *cm, const struct mfs_scale_draft *d, struct mfs_err *err)
{
    uint32_t staying = cm->state.nnodes - d->nleaving;
    double memory = 0;
    uint64_t room = 0;

    for (uint32_t i = 0; i < staying; i++)
        memory += (double)cm->state.node[i].memory;
    for (uint32_t i = 0; i < staying; i++)
        room += room_then(cm, &cm->state.node[i], (double)cm->state.node[i].memory / memory,
                          1 + cm->state.replicas);
    if (!d->nleaving || d->used <= room)
        return 0;
    return mfs_err_set(err, -ENOSPC,
                       "%s can't hold the data: %s (%llu bytes) are used, and those that "
                       "stay have room for %s (%llu bytes)",
                       MFS_TEXT_COUNT(d->to, "node"), MFS_TEXT_BYTES(d->used),
                       (unsigned long long)d->used, MFS_TEXT_BYTES(room), (unsigned long long)room);
}

static double lower_bound_ms(const struct mfs_cm *cm, const struct mfs_scale_draft *d)
{
    double rate = (double)cm->state.link_rate, each = (double)d->used / d->from, s;

    if (cm->state.link_rate == 0)
        return 0;
    if (d->to > d->from)
        s = mfs_lower_bound_grow(each, rate, d->from, d->to - d->from);
    else if (d->to < d->from)
        s = mfs_lower_bound_shrink(each, rate, d->from, d->from - d->to);
    else
        s = mfs_lower_bound_moves(d->plan.move, d->plan.nmoves, rate);
    return s > 0 && isfinite(s) ? s * 1e3 : 0;
}

int mfs_scale_draft_make(const struct mfs_cm *cm, const struct mfs_msg_scale *what,
                         struct mfs_scale_draft *d, struct mfs_err *err)
{
    uint64_t to = 0;
    int rc;

    *d = (struct mfs_scale_draft){.from = cm->state.nnodes};
    rc = target(cm, what, &to, err);
    if (!rc)
        rc = choose_migration(cm, what, d, err);
    if (!rc)
        rc = check_nodes(cm, err);
    if (rc)
        return rc;
    d->to = (uint32_t)to;
    d->ncoming = d->to > d->from ? d->to - d->from : 0;
    d->nleaving = d->to < d->from ? d->from - d->to : 0;
    sum_up(cm, d);
    if (d->ncoming)
        rc = mfs_spec_check_memory(&cm->state, d->to, err);
    if (!rc)
        rc = check_room(cm, d, err);
    if (!rc)
        rc = make_coming(cm, d, err);
    if (!rc)
        rc = plan_twice(cm, d->coming, d->ncoming, d->nleaving, &d->plan, err);
    if (rc)
        mfs_scale_draft_clear(d);
    else
        d->lower_bound_ms = lower_bound_ms(cm, d);
    return rc;
}

void mfs_scale_draft_clear(struct mfs_scale_draft *d)
{
    free(d->coming);
    d->coming = NULL;
    mfs_planner_clear(&d->plan);
}
