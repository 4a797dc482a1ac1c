/* What the nodes' shares are in proportion to (cm start --weights): memory, bandwidth, or whichever
 * matters. Pure;
 * docs/design/network.md, "Weights and re-planning", has the reasons.
 *
 * "bandwidth" is in proportion to it, "auto" has all links busy alike (cluster/hose.h). Memory
 * still limits: with the data as they are, and a good deal more, no node is given more than it
 * holds (cluster/fill.h). So the fuller everything is, the more the shares are those by memory. A
 * node whose bandwidth is unknown counts as one of the fastest that are known, and at least as what
 * it was seen to carry: a limit is known of a node that has been seen at it, so others never
 * waited for one of which none is known. */
#ifndef MFS_CM_STATE_WEIGHTS_H
#define MFS_CM_STATE_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/state/state.h"

#define MFS_WEIGHTS_MEMORY    "memory"
#define MFS_WEIGHTS_BANDWIDTH "bandwidth"
#define MFS_WEIGHTS_AUTO      "auto" /* bandwidth where nodes are known to differ in it */

/* The weights of n nodes of a deployment with `used` bytes of data: memory limits in bytes, or
 * parts of 1. All > 0. True: by bandwidth. */
bool mfs_weights_make(const struct mfs_cm_state *st, const struct mfs_cm_node *const *node,
                      size_t n, uint64_t used, double *weight);

/* What each link counts as, bytes/s; all 0 when nothing is known of any. */
void mfs_weights_bandwidth(const struct mfs_cm_node *const *node, size_t n, double *bandwidth);

/* What the operator has configured (cm start --bandwidth): RATE[,RATE…], bytes/s with suffixes, one
 * for each slot, the last for all further ones; 0 for unknown; "" tells nothing. 0, or -EINVAL with
 * the reason. */
int mfs_weights_configured(const char *list, uint32_t slot, double *bandwidth, struct mfs_err *err);

#endif
