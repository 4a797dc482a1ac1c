/* What the tests of replicas in cm share: a deployment without processes, of random numbers
 * (seeded.h). */
#ifndef MFS_TESTS_REPLICAS_TEST_H
#define MFS_TESTS_REPLICAS_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/text.h"
#include "cluster/capacity.h"
#include "cm/partitions/migrate_impl.h"
#include "cm/plan/planner.h"
#include "cm/partitions/replicas_impl.h"
#include "cm/change/scale/impl.h"
#include "cm/nodes/trust.h"
#include "seeded.h"

#define NODES_MOST 12
#define PARTS_MOST 120
#define MIB        (1ULL << 20)
#define NOW        (1000 * MFS_SEC)

struct world {
    struct mfs_cm cm;
    struct mfs_cm_node node[NODES_MOST];
    struct mfs_cm_part part[PARTS_MOST];
    struct mfs_cm_stale stale[4];
    struct mfs_node nodes[NODES_MOST], *listed[NODES_MOST];
    uint64_t bytes[PARTS_MOST];
};

static char connected; /* what is asked of a connection here is whether there is one */

/* All nodes are there, of one size, and empty; partitions of a size each, primaries in turn. */
static inline struct world *make(uint32_t nodes, uint32_t parts, uint64_t memory, uint64_t bytes)
{
    struct world *w = calloc(1, sizeof *w);

    w->cm.state = (struct mfs_cm_state){.nnodes = nodes,
                                        .node = w->node,
                                        .nparts = parts,
                                        .part = w->part,
                                        .replicas = 1,
                                        .stale = w->stale};
    w->cm.nodes = w->listed;
    w->cm.part_bytes = w->bytes;
    for (uint32_t i = 0; i < nodes; i++) {
        w->node[i] = (struct mfs_cm_node){.id = i * 3 + 1, .memory = memory};
        w->nodes[i] = (struct mfs_node){.cm = &w->cm,
                                        .record = &w->node[i],
                                        .conn = (struct mfs_conn *)&connected,
                                        .last_contact = NOW,
                                        .reported = true};
        w->nodes[i].last.memory_capacity = memory;
        w->listed[i] = &w->nodes[i];
    }
    for (uint32_t p = 0; p < parts; p++) {
        w->part[p].node = w->node[p % nodes].id;
        w->bytes[p] = bytes;
        w->nodes[p % nodes].last.memory_used += bytes;
    }
    return w;
}

static inline uint32_t at(const struct world *w, uint32_t id)
{
    for (uint32_t i = 0; i < w->cm.state.nnodes; i++)
        if (w->node[i].id == id)
            return i;
    fail_msg("there is no node %u", id);
    return 0;
}

static inline bool has_stale(const struct world *w, uint32_t node, uint32_t part)
{
    for (uint32_t i = 0; i < w->cm.state.nstale; i++)
        if (w->stale[i].node == node && w->stale[i].part == part)
            return true;
    return false;
}

/* May it be there, apart from room? */
static inline bool may_hold(const struct world *w, uint32_t i, uint32_t part)
{
    return w->node[i].id != w->part[part].node && !w->node[i].transition[0] && w->nodes[i].conn &&
           NOW - w->nodes[i].last_contact < 1200 * MFS_MSEC && !has_stale(w, w->node[i].id, part);
}

static inline bool has_room(const struct world *w, uint32_t i, uint32_t part)
{
    uint64_t may = w->nodes[i].last.memory_capacity, sum = w->nodes[i].last.memory_used;

    for (uint32_t p = 0; p < w->cm.state.nparts; p++)
        if (!strcmp(w->part[p].replica_step, MFS_REPLICA_COPY) &&
            w->part[p].replica_node == w->node[i].id)
            sum += w->bytes[p] + MFS_CAPACITY_PROCESS;
    return sum + may / 16 + w->bytes[part] + MFS_CAPACITY_PROCESS <= may;
}

/* Chooses for one partition and checks that; then its copy begins, or is there already. */
static inline int protect(struct world *w, uint32_t part)
{
    struct mfs_replica r = {.cm = &w->cm, .part = part};
    struct mfs_cm_part *p = &w->part[part];
    int rc = mfs_replica_choose(&r, NOW);
    bool any = false, room = false;

    for (uint32_t i = 0; i < w->cm.state.nnodes; i++) {
        any |= may_hold(w, i, part);
        room |= may_hold(w, i, part) && has_room(w, i, part);
    }
    assert_int_equal(rc, room ? 0 : any ? -ENOSPC : -ENODEV);
    if (rc)
        return rc;
    assert_int_not_equal(p->replica_node, p->node);
    assert_true(may_hold(w, at(w, p->replica_node), part));
    assert_true(has_room(w, at(w, p->replica_node), part));
    assert_true(p->replica_password[0] && p->replica_admin_password[0]);
    if (below(2)) {
        strcpy(p->replica_step, MFS_REPLICA_COPY);
    } else {
        mfs_text_copy(p->replica_step, sizeof p->replica_step, MFS_REPLICA_READY);
        w->nodes[at(w, p->replica_node)].last.memory_used += w->bytes[part] + MFS_CAPACITY_PROCESS;
    }
    return 0;
}

#endif
