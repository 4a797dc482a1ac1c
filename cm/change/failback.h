/* After failovers partitions are where their replicas were: a node that comes back serves none, and
 * another one may serve most of them, until it has no memory for what is written. When every node
 * is there, each partition has its replica again and nothing else goes on, they are shared out anew
 * as `cm rebalance` would, if the shares are far from the plan's. What is refused or fails is tried
 * again ever more rarely (pause.h).
 *
 * Partitions move by copies, not by changing roles with their replicas: all that clients remember
 * counts for nothing after that, and what was under way may fail (decisions/0017).
 *
 * Loop thread; nothing blocks. Does nothing without replicas, or when moving by itself is off. */
#ifndef MFS_CM_CHANGE_FAILBACK_H
#define MFS_CM_CHANGE_FAILBACK_H

#include "cm/nodes/control.h"

/* From the daemon's start on, in any phase. 0 or -ENOMEM. */
int mfs_failback_init(struct mfs_cm *cm);
void mfs_failback_fini(struct mfs_cm *cm);

/* Does a node serve a quarter more or less than planned, and more than one partition? */
bool mfs_failback_due(const uint32_t *count, const uint32_t *planned, uint32_t n);

#endif
