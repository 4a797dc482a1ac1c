/* Whether anybody may still rely on what he learned before a table was made, and whose clients do
 * not at all (cluster/trust.h). */
#ifndef MFS_CM_NODES_TRUST_H
#define MFS_CM_NODES_TRUST_H

#include "cm/nodes/control.h"

/* Somebody has the table of this epoch, and all whom he passes it on to. */
void mfs_trust_has(struct mfs_node *n, uint64_t epoch);

/* Table `epoch` was pushed at `since` (mono): does everybody have it, or has he been without a word
 * of cm for so long that he relies on nothing any more? */
bool mfs_trust_over(const struct mfs_cm *cm, uint64_t epoch, int64_t since, int64_t now);

/* Handler of `beat`: tells which nodes are lost. Those that others were told so of lately get no
 * answer. */
void mfs_trust_on_beat(struct mfs_conn *c, uint64_t id, const void *body, void *arg);

#endif
