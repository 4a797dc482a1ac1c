/* The daemon's use of the estimator: what Local Managers report goes to it, and what it finds out
 * goes into the nodes (`bandwidth`, "observed"), into the events, and, when it has changed by more
 * than a little, into cm.json. docs/design/network.md, "Estimator".
 *
 * What the operator has configured is a ceiling: traffic may show that a link carries less, and
 * that it no longer does; then what was configured counts again. What a probe found is where
 * observation begins. Loop thread; nothing blocks. */
#ifndef MFS_CM_CHANGE_BANDWIDTH_ESTIMATES_H
#define MFS_CM_CHANGE_BANDWIDTH_ESTIMATES_H

#include "cm/nodes/control.h"

/* From the daemon's start on, in any phase. 0 or -ENOMEM. */
int mfs_bandwidth_estimates_init(struct mfs_cm *cm);
void mfs_bandwidth_estimates_fini(struct mfs_cm *cm);

/* A report has come; a node that has gone is forgotten. */
void mfs_bandwidth_estimates_reported(struct mfs_cm *cm, const struct mfs_node *n,
                                      const struct mfs_msg_report *m);
void mfs_bandwidth_estimates_forget(struct mfs_cm *cm, const struct mfs_node *n);

#endif
