/* Which partitions leave nodes that are nearly full for others that have room. Pure.
 *
 * By bytes alone: numbers of partitions may differ from what is due to nodes afterwards. From the
 * fullest node that partition goes to the emptiest one which leaves the fuller of the two least
 * full, as long as that is clearly less than what the fullest was; then from the fullest again,
 * until no node is crowded, or none can be helped. So one node that nothing helps, as its
 * partitions are too large, does not keep others from being helped.
 *
 * What fills a node includes what its partitions need beyond their data, as writers are refused
 * without. docs/design/placement.md has what this reaches. */
#ifndef MFS_CM_PLAN_RELIEF_H
#define MFS_CM_PLAN_RELIEF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/plan/planner.h"

struct mfs_relief_node {
    uint32_t id;   /* unique */
    uint64_t used; /* bytes: data, also of replicas, and what its own partitions keep free */
    uint64_t room; /* bytes that its processes may use */
};

struct mfs_relief_part {
    uint32_t node, replica; /* ids; replica MFS_PLAN_NOWHERE: there is none */
    uint64_t bytes;         /* that move with it: data, and what it keeps free */
    bool stays;             /* it can't move now */
};

struct mfs_relief_input {
    const struct mfs_relief_node *node;
    size_t nnodes;
    const struct mfs_relief_part *part; /* by partition index */
    uint32_t nparts;
    uint64_t process; /* bytes that a node's room is less for each process that it has more */
};

/* How full are the fullest node, and all of them together? 0..1, or beyond. */
void mfs_relief_look(const struct mfs_relief_node *node, size_t n, double *fullest, double *all);

/* Is the fullest node so full, and everything together so much less, that it should give before
 * writers are refused? */
bool mfs_relief_crowded(double fullest, double all);

/* A node that is on no one's list counts as gone. Fills nmoves, move (the fullest node's first) and
 * bytes, at most MFS_RELIEF_MOST moves; clear it with mfs_planner_clear, also after a failure. 0 or
 * -ENOMEM. O(moves · (nodes + partitions)). */
#define MFS_RELIEF_MOST 64
int mfs_relief_plan(const struct mfs_relief_input *in, struct mfs_plan *out);

#endif
