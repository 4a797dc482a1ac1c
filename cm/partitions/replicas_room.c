/* Where a replica goes, and where it can't stay. A node may hold one if it is there, stays, has no
 * stale process of that partition, and has memory beside what it reports and what has just been
 * placed; the emptiest one gets it. A replica takes what its partition takes, so a node may come to
 * hold more than it may: after OVER_TIME one replica there is given up at a time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "cluster/capacity.h"
#include "cm/partitions/migrate.h"
#include "cm/partitions/replicas_impl.h"
#include "cm/plan/relief.h"

#define SECRET_BYTES  32
#define TIGHT         8 /* one that has less than such a part free may give replicas away */
#define WANTING_MOST  (30 * MFS_SEC)
#define OVER_LEAST    32 /* of a node's limit: so much beyond it is too much after OVER_TIME … */
#define OVER_MOST     8  /* … and so much at once */
#define OVER_TIME     (3 * MFS_SEC)
#define PART_OVERHEAD (4ULL << 20) /* of a process, so that empty ones are spread, too */

/* Of its memory, what would be in use with one more of so many bytes. */
static double fill_of(const struct mfs_cm *cm, const struct mfs_cm_node *n, uint64_t bytes)
{
    double sum = (double)(bytes + PART_OVERHEAD);

    for (uint32_t i = 0; i < cm->state.nparts; i++) {
        const struct mfs_cm_part *p = &cm->state.part[i];

        if (p->node == n->id || (p->replica_step[0] && p->replica_node == n->id))
            sum += (double)(cm->part_bytes[i] + PART_OVERHEAD);
    }
    return sum / (double)n->memory;
}

bool mfs_replicas_has_stale(const struct mfs_cm_state *s, uint32_t node, uint32_t part)
{
    for (uint32_t i = 0; i < s->nstale; i++)
        if (s->stale[i].node == node && s->stale[i].part == part)
            return true;
    return false;
}

/* Bytes that its processes may hold together. */
static uint64_t room_in(const struct mfs_cm *cm, const struct mfs_node *n)
{
    uint32_t own = mfs_cm_state_count(&cm->state, n->record->id);

    return n->last.memory_capacity ? n->last.memory_capacity
                                   : mfs_capacity_used(n->record->memory, own);
}

/* Bytes that the node can take for replicas: beside what it has, what is on its way there and the
 * partitions that are to move there, up to so many. */
static uint64_t room_to(const struct mfs_cm *cm, const struct mfs_node *n, uint64_t may)
{
    uint64_t taken = n->last.memory_used + mfs_migrate_bringing(cm, n->record->id);

    for (uint32_t i = 0; i < cm->state.nparts; i++) {
        const struct mfs_cm_part *p = &cm->state.part[i];

        if (p->replica_node == n->record->id && !strcmp(p->replica_step, MFS_REPLICA_COPY))
            taken += cm->part_bytes[i] + MFS_CAPACITY_PROCESS;
    }
    return may > taken ? may - taken : 0;
}

/* So that its own partitions can grow before they are full. */
static uint64_t room_on(const struct mfs_cm *cm, const struct mfs_node *n)
{
    return room_to(cm, n, mfs_capacity_replicated(room_in(cm, n)));
}

/* A node that is gone for a moment is no reason to fill the others. But a partition that has long
 * been without a replica is worse than writers that find memory full, as it is then anyway. */
static uint64_t room_for(const struct mfs_replica *r, const struct mfs_node *n, int64_t now)
{
    bool urgent = r->wanting_since && now - r->wanting_since >= WANTING_MOST;

    return urgent ? room_to(r->cm, n, room_in(r->cm, n)) : room_on(r->cm, n);
}

/* May a replica of the partition be there, if there is room? */
static bool may_hold(const struct mfs_cm *cm, const struct mfs_cm_node *n, uint32_t part,
                     int64_t now)
{
    return n->id != cm->state.part[part].node && !n->transition[0] &&
           !mfs_replicas_silent(cm, n->id, now) && !mfs_replicas_has_stale(&cm->state, n->id, part);
}

static bool is_avoided(const struct mfs_replica *r, const struct mfs_cm_node *n, int64_t now)
{
    return n->id == r->avoided && now < r->avoided_until;
}

int mfs_replica_choose(struct mfs_replica *r, int64_t now)
{
    const struct mfs_cm *cm = r->cm;
    struct mfs_cm_part *p = mfs_replica_state(r);
    uint64_t need = cm->part_bytes[r->part] + MFS_CAPACITY_PROCESS;
    const struct mfs_cm_node *best = NULL;
    bool full = false;
    double least = 0;
    int rc;

    for (uint32_t k = 0; k < cm->state.nnodes; k++) {
        /* Beginning behind the partition's own, so that equal ones take turns. */
        const struct mfs_cm_node *n = &cm->state.node[(p->node + r->part + k) % cm->state.nnodes];
        double fill = fill_of(cm, n, cm->part_bytes[r->part]), reported;
        const struct mfs_node *node = mfs_nodes_find(cm, n->id);

        if (!may_hold(cm, n, r->part, now))
            continue;
        if (room_for(r, node, now) < need) {
            full = true;
            continue;
        }
        reported = (double)(node->last.memory_used + need) / (double)room_in(cm, node);
        fill =
            reported > fill ? reported : fill; /* what has just been placed is not reported yet */
        if (!best || is_avoided(r, best, now) || (fill < least && !is_avoided(r, n, now))) {
            best = n;
            least = fill;
        }
    }
    if (!best)
        return full ? -ENOSPC : -ENODEV;
    rc = mfs_random_hex(p->replica_password, SECRET_BYTES);
    if (!rc)
        rc = mfs_random_hex(p->replica_admin_password, SECRET_BYTES);
    p->replica_node = best->id;
    return rc;
}

/* ---- and where it does not fit any more ------------------------------------------------------ */

/* Bytes beyond what its processes may hold together. */
static uint64_t over(const struct mfs_node *n)
{
    const struct mfs_msg_report *m = &n->last;

    return m->memory_capacity && m->memory_used > m->memory_capacity
               ? m->memory_used - m->memory_capacity
               : 0;
}

void mfs_replicas_weigh(struct mfs_node *n)
{
    if (over(n) <= n->record->memory / OVER_LEAST)
        n->over_since = 0;
    else if (!n->over_since)
        n->over_since = n->last_contact;
}

/* The largest of those on its node: none helps more. */
static bool is_largest(const struct mfs_replica *r)
{
    const struct mfs_cm *cm = r->cm;
    uint32_t node = mfs_replica_state(r)->replica_node, best = r->part;

    for (uint32_t i = 0; i < cm->state.nparts; i++) {
        const struct mfs_cm_part *p = &cm->state.part[i];

        if (p->replica_node == node && p->replica_step[0] &&
            strcmp(p->replica_step, MFS_REPLICA_DROP) && cm->part_bytes[i] > cm->part_bytes[best])
            best = i;
    }
    return best == r->part;
}

bool mfs_replica_crowds(const struct mfs_replica *r, int64_t now)
{
    struct mfs_node *n = mfs_nodes_find(r->cm, mfs_replica_state(r)->replica_node);

    if (!n || !n->over_since || now - n->relieved_at < OVER_TIME ||
        (now - n->over_since < OVER_TIME && over(n) <= n->record->memory / OVER_MOST))
        return false;
    return is_largest(r);
}

/* ---- and where it makes room for a partition ------------------------------------------------- */

/* May it go? One that takes over is the partition soon, one that is dropped goes already. */
static bool may_go(const struct mfs_cm_part *p, uint32_t node)
{
    return p->replica_node == node && (!strcmp(p->replica_step, MFS_REPLICA_COPY) ||
                                       !strcmp(p->replica_step, MFS_REPLICA_TERM) ||
                                       !strcmp(p->replica_step, MFS_REPLICA_READY));
}

bool mfs_replica_yields(const struct mfs_replicas *g, const struct mfs_node *n, int64_t now)
{
    const struct mfs_cm_state *s = &g->cm->state;

    if (n->relieved_at && now - n->relieved_at < OVER_TIME)
        return true;
    for (uint32_t i = 0; i < s->nstale; i++)
        if (s->stale[i].node == n->record->id)
            return true;
    for (uint32_t i = 0; i < s->nparts; i++)
        if (s->part[i].replica_node == n->record->id &&
            !strcmp(s->part[i].replica_step, MFS_REPLICA_DROP))
            return true;
    return false;
}

struct mfs_replica *mfs_replica_to_yield(struct mfs_replicas *g, const struct mfs_node *n,
                                         uint64_t bytes)
{
    const struct mfs_cm *cm = g->cm;
    uint64_t due = n->last.memory_used + bytes, may = room_in(cm, n), sum = 0;
    uint64_t missing = due > may ? due - may : 0;
    struct mfs_replica *best = NULL;
    uint64_t size = 0;

    for (uint32_t i = 0; i < cm->state.nparts; i++) {
        uint64_t mine = cm->part_bytes[i] + MFS_CAPACITY_PROCESS;

        if (!may_go(&cm->state.part[i], n->record->id))
            continue;
        sum += mine;
        if (!best || (size < missing ? mine > size : mine >= missing && mine < size)) {
            best = &g->one[i];
            size = mine;
        }
    }
    return missing && sum >= missing ? best : NULL;
}

/* ---- and where it would be better ------------------------------------------------------------ */

/* What nodes hold of what they may fill, as plans keep some of it free for partitions to grow. */
static void list_nodes(const struct mfs_cm *cm, struct mfs_relief_node *out)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        const struct mfs_node *n = cm->nodes[i];
        uint64_t room = mfs_capacity_replicated(room_in(cm, n)), left = room_on(cm, n);

        out[i] = (struct mfs_relief_node){n->record->id, room - left, room};
        if (!left)
            out[i].used = n->last.memory_used;
    }
}

static bool is_tight(const struct mfs_cm *cm, uint32_t node)
{
    const struct mfs_node *n = mfs_nodes_find(cm, node);
    uint64_t may = n ? room_in(cm, n) : 0;

    return n && n->reported && n->last.memory_used > may - may / TIGHT;
}

/* Replicas, each of which may be anywhere but beside its partition. */
static void list_replicas(const struct mfs_cm *cm, struct mfs_relief_part *out)
{
    for (uint32_t i = 0; i < cm->state.nparts; i++) {
        const struct mfs_cm_part *p = &cm->state.part[i];

        out[i] = (struct mfs_relief_part){.node = p->replica_node,
                                          .replica = p->node,
                                          .bytes = cm->part_bytes[i] + MFS_CAPACITY_PROCESS,
                                          .stays = !mfs_replicas_ready(&cm->state, i) ||
                                                   !is_tight(cm, p->replica_node)};
    }
}

static struct mfs_replica *first_of(struct mfs_replicas *g, const struct mfs_plan *plan,
                                    int64_t now)
{
    for (uint32_t i = 0; i < plan->nmoves; i++) {
        const struct mfs_node *to = mfs_nodes_find(g->cm, plan->move[i].to);

        if (to && may_hold(g->cm, to->record, plan->move[i].index, now))
            return &g->one[plan->move[i].index];
    }
    return NULL;
}

struct mfs_replica *mfs_replicas_to_move(struct mfs_replicas *g, int64_t now)
{
    const struct mfs_cm *cm = g->cm;
    struct mfs_relief_node *node = calloc(cm->state.nnodes + 1, sizeof *node);
    struct mfs_relief_part *part = calloc(cm->state.nparts + 1, sizeof *part);
    const struct mfs_relief_input in = {node, cm->state.nnodes, part, cm->state.nparts, 0};
    struct mfs_replica *r = NULL;
    struct mfs_plan plan = {0};

    if (node && part) {
        list_nodes(cm, node);
        list_replicas(cm, part);
        if (!mfs_relief_plan(&in, &plan))
            r = first_of(g, &plan, now);
        mfs_planner_clear(&plan);
    }
    free(node);
    free(part);
    return r;
}
