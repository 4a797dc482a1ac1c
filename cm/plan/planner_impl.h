/* Inside the planner: what its parts share. */
#ifndef MFS_CM_PLAN_PLANNER_IMPL_H
#define MFS_CM_PLAN_PLANNER_IMPL_H

#include "cm/plan/planner.h"

/* A node, as the plan goes. */
struct mfs_plan_place {
    const struct mfs_plan_node *in;
    uint32_t first, now;    /* its partitions in `order`, the smallest first */
    uint32_t target, slots; /* slots: partitions that it is still to get */
    uint64_t held;          /* bytes of what stays and what was placed, overhead included */
    bool relieved;          /* gives because of its memory */
};

struct mfs_plan_work {
    const struct mfs_plan_input *in;
    struct mfs_plan_place *node;
    uint32_t *order; /* partitions by node, then bytes; those from nowhere at the end */
    uint32_t *where; /* partition → index of its node, nnodes for nowhere */
    uint32_t *to;    /* partition → index of its node afterwards, nnodes: not placed */
    uint32_t *loose; /* partitions to be placed */
    uint32_t nloose;
    uint32_t *heap; /* nodes with slots, most room per slot on top */
    uint32_t nheap;
    bool bent;
};

/* planner_list.c: everything is placed; fills all of *out. 0 or -ENOMEM. */
int mfs_plan_list(const struct mfs_plan_work *w, struct mfs_plan *out);

#endif
