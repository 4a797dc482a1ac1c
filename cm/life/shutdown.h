/* The end of a deployment. */
#ifndef MFS_CM_LIFE_SHUTDOWN_H
#define MFS_CM_LIFE_SHUTDOWN_H

#include "cm/nodes/control.h"

void mfs_shutdown_begin(struct mfs_cm *cm);
void mfs_shutdown_wait(struct mfs_cm *cm, struct mfs_conn *c, uint64_t id); /* answers at the end */
void mfs_shutdown_fini(struct mfs_cm *cm);

#endif
