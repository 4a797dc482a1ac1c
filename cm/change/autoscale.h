/* The daemon's use of a policy: each second the nodes' figures go to it, and what it decides is
 * begun. It acts only when every node is there and has reported; a change that is refused
 * or fails is tried again after 10 s, then ever more rarely, up to 5 min.
 *
 * It also sees to the table's `growing`: true while nodes are being added, or the policy can add
 * some and is not just waiting after a failure. Loop thread; nothing blocks. */
#ifndef MFS_CM_CHANGE_AUTOSCALE_H
#define MFS_CM_CHANGE_AUTOSCALE_H

#include "cm/nodes/control.h"

/* From the daemon's start on, in any phase. 0 or -ENOMEM. */
int mfs_autoscale_init(struct mfs_cm *cm);
void mfs_autoscale_fini(struct mfs_cm *cm);

/* What a new table is to say. */
bool mfs_autoscale_growing(const struct mfs_cm *cm);

/* Has clients told at once when that is another than the newest table says; else it takes up to a
 * second. */
void mfs_autoscale_tell(struct mfs_cm *cm);

/* The utilization above which nodes come, and below which they go, by the policy in force; 0: they
 * never do. False before there is one. */
bool mfs_autoscale_thresholds(const struct mfs_cm *cm, double *out_at, double *in_at);

/* Has that policy followed from now on, and says so in the events, with `who` behind it ("" or as
 * in
 * ", by ..."). 0, or a negative errno with the reason: -EINVAL where there is none of that name. */
int mfs_autoscale_change(struct mfs_cm *cm, const char *name, const char *who, struct mfs_err *err);

/* Handler of MFS_MSG_POLICY. */
void mfs_autoscale_on_policy(struct mfs_conn *c, uint64_t id, const void *body, void *arg);

#endif
