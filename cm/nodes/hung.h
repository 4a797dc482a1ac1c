/* A Local Manager that hangs, or was stopped, is ended, so that another takes its place (procs.c):
 * without one a node's limits of memory stand still, its clients get no table, and what dies there
 * stays dead. Only where the Local Managers are processes of this machine (cm/provider/traits.h).
 *
 * Loop thread. */
#ifndef MFS_CM_NODES_HUNG_H
#define MFS_CM_NODES_HUNG_H

#include "cm/nodes/control.h"

/* Without a word for so long, while cm could hear it, a Local Manager hangs. */
#define MFS_HUNG_TIME (30 * MFS_SEC)

int mfs_hung_begin(struct mfs_cm *cm); /* 0 or -ENOMEM */
void mfs_hung_fini(struct mfs_cm *cm);

#endif
