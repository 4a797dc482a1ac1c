/* What `cm status` shows. */
#ifndef MFS_CM_LIFE_STATUS_H
#define MFS_CM_LIFE_STATUS_H

#include "cm/nodes/control.h"

/* Clear it with mfs_schema_clear. 0, or -ENOMEM and nothing is left. */
int mfs_status_make(const struct mfs_cm *cm, struct mfs_status *s);

#endif
