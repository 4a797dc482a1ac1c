/* How many partitions a new deployment has when nobody says it. Pure.
 *
 * A node that is full gives whole partitions away, so every node should have several of them, also
 * when the deployment has grown as far as it may: EACH at so many nodes. But a partition takes
 * memory beside its data, and time of the processors of its machine: docs/design/placement.md,
 * "Numbers", has what was measured. */
#ifndef MFS_CM_PLAN_PARTITIONS_H
#define MFS_CM_PLAN_PARTITIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Of every node when there are as many as there may be. */
#define MFS_PARTITIONS_EACH 8

struct mfs_partitions_for {
    uint32_t nodes;       /* at the start, at least 1 */
    uint32_t max_nodes;   /* that it is to grow to; 0: nobody said */
    uint64_t memory;      /* bytes of each node, its limit */
    uint32_t stripe_size; /* bytes */
    bool one_machine;     /* all nodes share the processors and the memory of one machine */
};

/* EACH times max_nodes. Where nobody said how many: EACH times the nodes at the start, and where
 * nodes are machines of their own, eight times that, for 16 nodes at least. Of that no more than
 * keep a tenth of the nodes' memory at the start free for what is being written
 * (MFS_CAPACITY_NEXT_WRITES), as many for each of max_nodes, and never less than the Y0 rule gives
 * with its usual beta (mfs_y0_partitions). */
uint32_t mfs_partitions_default(const struct mfs_partitions_for *d);

#endif
