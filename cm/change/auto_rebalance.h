/* The daemon's use of cm/plan/rebalance_policy.h: each second the nodes' figures go to it; when it
 * is time, a plan is made and weighed, and one that is worth it is carried out, as `cm rebalance`
 * would. It also moves partitions off a node that is nearly full while others have room, as
 * shares by bandwidth, or partitions that differ, bring about; that needs no pay, as writers would
 * be refused, and they wait meanwhile. With weights by memory it does that alone. It acts only
 * while no other change runs and every node is there; what is
 * refused or fails is tried again after 10 s, then ever more rarely, up to 5 min. Loop thread;
 * nothing blocks. */
#ifndef MFS_CM_CHANGE_AUTO_REBALANCE_H
#define MFS_CM_CHANGE_AUTO_REBALANCE_H

#include "cm/nodes/control.h"

/* From the daemon's start on, in any phase. 0 or -ENOMEM. */
int mfs_auto_rebalance_init(struct mfs_cm *cm);
void mfs_auto_rebalance_fini(struct mfs_cm *cm);

/* Is room being made on a full node, so that a writer that finds none should wait? */
bool mfs_auto_rebalance_relieves(const struct mfs_cm *cm);

#endif
