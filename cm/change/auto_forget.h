/* Forgets nodes that are dead by itself (cm start --auto-forget), as `cm forget` does: once a node
 * has been away for so long, and replicas have taken over all that it had. */
#ifndef MFS_CM_CHANGE_AUTO_FORGET_H
#define MFS_CM_CHANGE_AUTO_FORGET_H

#include "cm/nodes/control.h"

int mfs_auto_forget_init(struct mfs_cm *cm); /* 0 or -ENOMEM */
void mfs_auto_forget_fini(struct mfs_cm *cm);

#endif
