/* Nodes that were told to end (SIGTERM to their lm: a job's time is over, a machine is taken away):
 * they are drained, as `cm drain` does, as long as they stay.
 *
 * Loop thread; nothing blocks. */
#ifndef MFS_CM_CHANGE_DEPARTURES_H
#define MFS_CM_CHANGE_DEPARTURES_H

#include "cm/nodes/control.h"

/* A handler: a node's lm says how long it stays. */
void mfs_departures_on_leave(struct mfs_conn *c, uint64_t id, const void *body, void *arg);
/* Nodes of an earlier cm that were told, after a restart. */
void mfs_departures_resume(struct mfs_cm *cm);
/* Bytes of nodes that were told to end for which others have no room just now; with replicas, whose
 * others have them: 0. */
uint64_t mfs_departures_will_lose(const struct mfs_cm *cm);
void mfs_departures_fini(struct mfs_cm *cm);

#endif
