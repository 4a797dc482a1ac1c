/* What nodes' links carry, measured when they come (cm start --probe): the conductor. One node
 * after another is measured with the help of up to eight others at once (lm/measure/probe.h); of
 * many nodes, groups of nine at the same time, each among themselves. docs/design/network.md,
 * "Probe", has the cost and how exact it is. */
#ifndef MFS_CM_CHANGE_PROBE_H
#define MFS_CM_CHANGE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/nodes/control.h"

#define MFS_CM_PROBE_MS     400 /* for a node, each way; three times that where little goes */
#define MFS_CM_PROBE_BYTES  (64ULL << 20)       /* each way: then it ends earlier */
#define MFS_CM_PROBE_HELP   8                   /* others at once */
#define MFS_CM_PROBE_ALL_NS (30 * 1000000000LL) /* no measurement begins later */

/* Measures these nodes (ids, copied), but not those that the operator has configured, and those
 * only that are connected; then calls `done`, never from inside this call. node.bandwidth and
 * events tell what came of it; the caller saves. A node that does not answer stays as it was, and
 * delays the others by 9 s at most. 0; -EBUSY while another probe goes on; -ENOTCONN when there is
 * nothing to measure; -ENOMEM. */
int mfs_cm_probe_begin(struct mfs_cm *cm, const uint32_t *node, uint32_t n,
                       void (*done)(struct mfs_cm *cm, void *arg), void *arg);

bool mfs_cm_probe_goes_on(const struct mfs_cm *cm);

/* When no connection is left; `done` is not called any more. */
void mfs_cm_probe_fini(struct mfs_cm *cm);

#endif
