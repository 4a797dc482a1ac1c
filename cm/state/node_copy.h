/* The copy of cm's state that each node keeps, node-ID/cm.json: as the lm got it from cm. */
#ifndef MFS_CM_STATE_NODE_COPY_H
#define MFS_CM_STATE_NODE_COPY_H

#include "args/paths.h"
#include "cm/state/state.h"

/* The newest one of this machine's nodes; *node: whose it is, may be NULL. 0 and the state is the
 * caller's to clear; -ENOENT: there is none; else a negative errno with the reason, when there are
 * only such as make no sense. Blocks. */
int mfs_node_copy_find(const struct mfs_paths *p, struct mfs_cm_state *s, uint32_t *node,
                       struct mfs_err *err);

#endif
