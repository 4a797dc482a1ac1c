/* Why a node did not come, for the command line that waits for it: the file `failure`. Blocks. */
#ifndef MFS_CM_NODES_FAILURE_H
#define MFS_CM_NODES_FAILURE_H

#include "cm/nodes/control.h"

/* Leaves the reason, on the first line, with the ends of the node's logs behind it, its client's
 * too when it was mounting. `n` may be NULL: then there are none. What can't be written is logged.
 */
void mfs_failure_write(const struct mfs_cm *cm, const struct mfs_node *n, const char *why,
                       bool mounting);

/* Adds a line to what stands there; where nothing failed that somebody waits for there is no file,
 * and nothing is done. */
void mfs_failure_add(const struct mfs_cm *cm, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
