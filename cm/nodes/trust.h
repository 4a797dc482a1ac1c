/* Whether a client may still rely on what it learned before a table was made, and the nodes whose
 * clients rely on nothing (cluster/trust.h). */
#ifndef MFS_CM_NODES_TRUST_H
#define MFS_CM_NODES_TRUST_H

#include "cm/nodes/control.h"

/* The node has the table of this epoch, and so have its clients. */
void mfs_trust_has(struct mfs_node *n, uint64_t epoch);

/* Table `epoch` was pushed at `since` (mono): does each client have it, or has it been without an
 * answer of cm for so long that it relies on nothing any more? */
bool mfs_trust_over(const struct mfs_cm *cm, uint64_t epoch, int64_t since, int64_t now);

/* Handler of `beat`: answers with the nodes that are lost. A node that was in such an answer lately
 * gets none. */
void mfs_trust_on_beat(struct mfs_conn *c, uint64_t id, const void *body, void *arg);

#endif
