/* What was unmounted on purpose is mounted again. */
#ifndef MFS_CM_LIFE_REMOUNT_H
#define MFS_CM_LIFE_REMOUNT_H

#include "cm/nodes/control.h"

/* An operator's MOUNT: mounts where that is missing, then answers. */
void mfs_remount(struct mfs_cm *cm, struct mfs_conn *c, uint64_t id);

#endif
