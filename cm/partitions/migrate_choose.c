/* Which move of a list begins next, and how long one that can't begin waits. A move needs both
 * nodes connected and memory on the target, of which reports tell; when nothing is under way and
 * nothing can begin for IDLE_MOST (ABSENT_MOST while a node is away), the moves that wait are given
 * up. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cluster/capacity.h"
#include "cm/partitions/migrate_impl.h"
#include "cm/plan/move_order.h"
#include "cm/partitions/replicas.h"
#include "proto/times.h"

#define IDLE_MOST   (5 * MFS_SEC)     /* when no node has the memory: reports come each second */
#define REPORT_TIME (3 * MFS_SEC / 2) /* until one has come */
#define ABSENT_MOST (60 * MFS_SEC)    /* when a node is away, or replicas make room */

static_assert(MFS_REPORT_EACH < REPORT_TIME, "a report comes within that time");
static_assert(2 * REPORT_TIME < IDLE_MOST, "reports may show memory before a move is given up");
static_assert(IDLE_MOST < ABSENT_MOST, "a node that is away may come back");

/* Nodes on one machine share its processors. Nodes of their own have links, and more copies at once
 * hide what each needs besides its bytes: a process that starts, a fork, the cut-over. Not so cold
 * ones: each is without service for its copy's time, which is the longer the more share a link. */
static const struct mfs_order_limits few = {.per_source = 2, .per_target = 2, .all = 4},
                                     many = {.per_source = 4, .per_target = 4},
                                     at_once = {UINT32_MAX, UINT32_MAX, UINT32_MAX, false};

static uint32_t node_index(const struct mfs_cm *cm, uint32_t id)
{
    uint32_t i = 0;

    while (i < cm->state.nnodes && cm->state.node[i].id != id)
        i++;
    return i;
}

/* A partition whose last move is still being cleared away waits for that, and for what runs of it
 * where it is to go. */
static bool is_held(const struct mfs_migrate *g, const struct mfs_move *m, int64_t now)
{
    if (m->again_at > now || mfs_replicas_hold(g->cm, m->part) ||
        mfs_replicas_has_stale(&g->cm->state, m->to, m->part))
        return true;
    for (uint32_t i = 0; i < g->cm->state.nmoves; i++)
        if (g->cm->state.move[i].part == m->part)
            return true;
    return false;
}

bool mfs_migrate_wants(const struct mfs_cm *cm, uint32_t part)
{
    const struct mfs_migrate *g = cm->migrate;

    for (uint32_t i = 0; g && i < g->n; i++)
        if (g->one[i]->move.part == part && g->one[i]->move.step != MFS_AT_OVER)
            return true;
    return false;
}

/* Of the target's memory; its process takes some, too. */
static uint64_t size_of(const struct mfs_move *m)
{
    return m->bytes + MFS_CAPACITY_PROCESS;
}

uint64_t mfs_migrate_bringing(const struct mfs_cm *cm, uint32_t node)
{
    const struct mfs_migrate *g = cm->migrate;
    uint64_t sum = 0;

    for (uint32_t i = 0; g && i < g->n; i++)
        if (g->one[i]->move.to == node && !g->one[i]->move.settled)
            sum += size_of(&g->one[i]->move);
    return sum;
}

static void describe(const struct mfs_migrate *g, const struct mfs_move *m, int64_t now,
                     struct mfs_order_move *out)
{
    *out = (struct mfs_order_move){.from = node_index(g->cm, m->from),
                                   .to = node_index(g->cm, m->to),
                                   .bytes = size_of(m),
                                   .cold = m->cold,
                                   .copied = m->step != MFS_AT_RECEIVE,
                                   .state = MFS_ORDER_UNDER_WAY};
    if (m->settled || out->from == g->cm->state.nnodes || out->to == g->cm->state.nnodes)
        out->state = MFS_ORDER_OVER;
    else if (m->step == MFS_AT_WAITING)
        out->state = is_held(g, m, now) ? MFS_ORDER_HELD : MFS_ORDER_WAITING;
}

static void describe_node(const struct mfs_node *n, struct mfs_order_node *out)
{
    *out = (struct mfs_order_node){.used = n->last.memory_used,
                                   .capacity = n->last.memory_capacity
                                                   ? n->last.memory_capacity
                                                   : mfs_capacity_partitions(n->record->memory),
                                   .up = n->conn != NULL};
}

static struct mfs_order_limits limits_of(const struct mfs_migrate *g)
{
    bool local = g->cm->provider->traits->one_machine;
    struct mfs_order_limits limits = local || (g->n && g->one[0]->move.cold) ? few : many;

    if (g->at_once)
        return at_once;
    limits.small_first = g->small_first;
    if (!local)
        limits.all = limits.per_target * g->cm->state.nnodes;
    return limits;
}

struct mfs_migrate_one *mfs_migrate_choose(struct mfs_migrate *g, int64_t now)
{
    uint32_t nnodes = g->cm->state.nnodes;
    struct mfs_order_node *node = calloc(nnodes, sizeof *node);
    struct mfs_order_move *move = calloc(g->n, sizeof *move);
    struct mfs_order_limits limits = limits_of(g);
    int i = -1;

    if (node && move) {
        for (uint32_t k = 0; k < nnodes; k++)
            describe_node(g->cm->nodes[k], &node[k]);
        for (uint32_t k = 0; k < g->n; k++)
            describe(g, &g->one[k]->move, now, &move[k]);
        i = mfs_order_next(node, nnodes, move, g->n, &limits);
    }
    free(node);
    free(move);
    return i < 0 ? NULL : g->one[i];
}

/* ---- what waits in vain ---------------------------------------------------------------------- */

void mfs_migrate_give_up(struct mfs_migrate_one *o, int code, const char *why)
{
    mfs_err_set(&o->move.why, code, "%s", why);
    o->move.step = MFS_AT_OVER;
    o->move.settled = true;
}

static bool is_away(const struct mfs_migrate *g, uint32_t node)
{
    const struct mfs_node *n = mfs_nodes_find(g->cm, node);

    return n && !n->conn;
}

/* Does something wait, and nothing is under way? */
static bool is_idle(const struct mfs_migrate *g)
{
    bool waiting = false;

    for (uint32_t i = 0; i < g->n; i++) {
        if (!g->one[i]->move.settled && !mfs_migrate_waits(g->one[i]))
            return false;
        waiting |= mfs_migrate_waits(g->one[i]);
    }
    return waiting;
}

/* Is it only a matter of time? Partitions come before replicas: when nothing else makes room, one
 * of those on the target goes. */
static bool is_patient(const struct mfs_migrate *g, const struct mfs_move *m, int64_t now)
{
    if (is_away(g, m->from) || is_away(g, m->to) || is_held(g, m, now))
        return true;
    return now - g->idle_since >= REPORT_TIME && mfs_replicas_yield(g->cm, m->to, size_of(m), now);
}

static void give_up_for_memory(struct mfs_migrate_one *o)
{
    const struct mfs_node *to = mfs_nodes_find(o->of->cm, o->move.to);
    struct mfs_order_node n = {0};
    struct mfs_err why;

    if (to)
        describe_node(to, &n);
    mfs_err_set(&why, -ENOSPC, "%s has no memory for it: it takes %s, and %s of %s are in use",
                to ? to->record->name : "its node", MFS_TEXT_BYTES(size_of(&o->move)),
                MFS_TEXT_BYTES(n.used), MFS_TEXT_BYTES(n.capacity));
    mfs_migrate_give_up(o, why.code, why.msg);
}

static void give_up_waiting(struct mfs_migrate_one *o, int64_t now)
{
    const struct mfs_migrate *g = o->of;

    if (is_away(g, o->move.from) || is_away(g, o->move.to))
        mfs_migrate_give_up(o, -ENODEV, "a node that it needs is not connected");
    else if (is_held(g, &o->move, now))
        mfs_migrate_give_up(o, -EBUSY,
                            "its replica, or what its last move left, has not ended in time");
    else
        give_up_for_memory(o);
}

void mfs_migrate_check_idle(struct mfs_migrate *g, int64_t now)
{
    int64_t most = IDLE_MOST;

    if (!is_idle(g)) {
        g->idle_since = 0;
        return;
    }
    if (!g->idle_since)
        g->idle_since = now;
    for (uint32_t i = 0; i < g->n; i++)
        if (mfs_migrate_waits(g->one[i]) && is_patient(g, &g->one[i]->move, now))
            most = ABSENT_MOST;
    for (uint32_t i = 0; i < g->n && now - g->idle_since > most; i++)
        if (mfs_migrate_waits(g->one[i]))
            give_up_waiting(g->one[i], now);
}
