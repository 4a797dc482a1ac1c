/* Replicas: each partition's second process, on another node, and what happens when the first one
 * dies or its node is out of reach (decisions/0017).
 *
 * Loop thread; nothing blocks. All of it is harmless in a deployment without replicas. */
#ifndef MFS_CM_PARTITIONS_REPLICAS_H
#define MFS_CM_PARTITIONS_REPLICAS_H

#include "cm/nodes/control.h"

/* From when the deployment runs, also after a restart of cm. 0 or -ENOMEM. */
int mfs_replicas_begin(struct mfs_cm *cm);
void mfs_replicas_fini(struct mfs_cm *cm);

/* What nodes.c hears. */
void mfs_replicas_joined(struct mfs_cm *cm, struct mfs_node *n, const struct mfs_msg_join *m);
void mfs_replicas_reported(struct mfs_cm *cm, struct mfs_node *n, const struct mfs_msg_report *m);
void mfs_replicas_died(struct mfs_cm *cm, const struct mfs_msg_died *m);

/* Must the partition's replica be given up before the partition can move? It is, once there is such
 * a move. */
bool mfs_replicas_hold(const struct mfs_cm *cm, uint32_t part);

/* Is a former process of the partition still to be ended on that node (id)? */
bool mfs_replicas_has_stale(const struct mfs_cm_state *s, uint32_t node, uint32_t part);

/* A partition of so many bytes waits for memory on a node (id), where it is to move, and nothing
 * else will make room: a replica there that can be made again elsewhere is given up. True: one
 * goes, or has gone just now; call again after a report. False: all of them would not do. */
bool mfs_replicas_yield(struct mfs_cm *cm, uint32_t node, uint64_t bytes, int64_t now);

/* Has the node (id) a replica that takes over, or still may? */
bool mfs_replicas_at(const struct mfs_cm *cm, uint32_t node);

/* Could the partition's replica take over at once? */
bool mfs_replicas_ready(const struct mfs_cm_state *s, uint32_t part);

/* The partition's process is another one from now on, which is empty: what was known of the former
 * one, and of its replica, is forgotten; the replica's process is stale. Does not write the state.
 */
void mfs_replicas_renew(struct mfs_cm *cm, uint32_t part);

/* Do replicas leave a node that is nearly full for others that have room, or have they just, or may
 * they once those have been made that are being made? */
bool mfs_replicas_spread(const struct mfs_cm *cm, int64_t now);

/* Partitions that should have a replica and have none that could take over. */
uint32_t mfs_replicas_missing(const struct mfs_cm *cm);

#endif
