/* The end of a deployment. */
#ifndef MFS_CM_LIFE_SHUTDOWN_H
#define MFS_CM_LIFE_SHUTDOWN_H

#include <assert.h>

#include "cm/nodes/control.h"
#include "proto/times.h"

#define MFS_STOP_CLIENTS_TIME (8 * MFS_SEC)  /* for the clients of all nodes to end */
#define MFS_STOP_TIME         (25 * MFS_SEC) /* then, for the Local Managers with all they run */

static_assert(MFS_CLIENT_END_TIME < MFS_STOP_CLIENTS_TIME, "lm kills what has not ended by then");

void mfs_shutdown_begin(struct mfs_cm *cm);
/* After that: answers at the end. */
void mfs_shutdown_wait(struct mfs_cm *cm, struct mfs_conn *c, uint64_t id);
void mfs_shutdown_joined(struct mfs_node *n); /* its lm has come meanwhile */
void mfs_shutdown_fini(struct mfs_cm *cm);

#endif
