/* The daemon's service: what Local Managers, clients and operators may send to cm. */
#ifndef MFS_CM_LIFE_SERVICE_H
#define MFS_CM_LIFE_SERVICE_H

#include "cm/nodes/control.h"

extern const struct mfs_service mfs_cm_service; /* of all messages; arg is the mfs_cm */

/* For mfs_cm.lm_lost. */
bool mfs_service_lm_lost(struct mfs_node *n, int code, const char *why);

#endif
