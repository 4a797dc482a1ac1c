/* Which partitions move when the nodes change. Pure.
 *
 * Targets: the Y0 rule (cluster/y0.h) over the nodes' weights gives each its number of partitions;
 * where remainders tie, that choice is taken which moves less. Then each node above its number
 * gives its smallest partitions away: no plan that reaches the numbers moves fewer bytes, as each
 * node must give that many, and none that gives must also take. Those are placed, large ones first,
 * on the node below its number that has most memory free.
 *
 * A node that gives its smallest again and again keeps the largest, and is full first. With `alike`
 * it gives some of each size, so that what it keeps is as large on the average as what it gives.
 *
 * Memory comes before numbers. A partition that fits none of the nodes below their number stays
 * where it is or, when it can't, goes to the node with most memory free; a node beyond its memory
 * gives more. Only in that case a node may both give and take, and numbers may differ from the
 * targets (`bent`). When that fails, too, only what must move is placed, where it fits most
 * tightly, and a smaller partition may make room. To fill memories exactly is bin packing: what is
 * not found in these ways is refused, even if some clever arrangement exists. */
#ifndef MFS_CM_PLAN_PLANNER_H
#define MFS_CM_PLAN_PLANNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "proto/messages.h"

#define MFS_PLAN_NOWHERE                                                                           \
    UINT32_MAX /* a partition whose process is gone: it costs nothing to move */

struct mfs_plan_node {
    uint32_t id;     /* unique */
    double weight;   /* memory or bandwidth; 0: the node is leaving and gives everything */
    uint64_t memory; /* bytes that it may hold, data and `part_overhead` of each partition */
};

struct mfs_plan_part {
    uint32_t node;  /* id, or MFS_PLAN_NOWHERE */
    uint64_t bytes; /* that it holds */
};

struct mfs_plan_input {
    const struct mfs_plan_node *node;
    size_t nnodes;
    const struct mfs_plan_part *part; /* by partition index */
    uint32_t nparts;
    uint64_t part_overhead; /* bytes that a partition takes besides its data */
    bool alike;             /* nodes give some of each size instead of their smallest */
};

struct mfs_plan {
    uint32_t nmoves;
    struct mfs_scale_move *move; /* in an order that keeps all sources busy, large ones first */
    uint64_t bytes;              /* moved in all, as of parts that are somewhere */
    uint32_t *count;             /* partitions of each node afterwards, in the input's order */
    uint64_t *held;              /* bytes of each node afterwards, overhead included */
    bool bent;                   /* memory was in the way of the targets */
};

/* Clear the plan with mfs_planner_clear, also after a failure. 0, -EINVAL (nodes or partitions make
 * no sense: no node stays, more nodes than partitions, …), -ENOSPC with the figures when the data
 * do not fit, -ENOMEM. O((nodes + partitions) log), except when memory is nearly full. */
int mfs_planner_plan(const struct mfs_plan_input *in, struct mfs_plan *out, struct mfs_err *err);
void mfs_planner_clear(struct mfs_plan *p);

#endif
