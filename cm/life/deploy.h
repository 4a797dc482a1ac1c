/* The start of a deployment, step by step; and single steps of it for a node that comes later. */
#ifndef MFS_CM_LIFE_DEPLOY_H
#define MFS_CM_LIFE_DEPLOY_H

#include "cm/nodes/control.h"

#define MFS_DEPLOY_TIME (180 * MFS_SEC) /* of a start, besides what mfs_deploy_time adds */

/* That a start may take: the loading of a checkpoint and the provider's queue included, ns. */
int64_t mfs_deploy_time(const struct mfs_cm_state *s);

void mfs_deploy_begin(struct mfs_cm *cm);
void mfs_deploy_joined(struct mfs_cm *cm); /* a node has joined while step is JOIN */
/* Gives the start up: node's log, when not NULL, is shown with the reason. */
void mfs_deploy_fail(struct mfs_cm *cm, const struct mfs_node *node, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void mfs_deploy_push(struct mfs_cm *cm, struct mfs_node *n); /* the table, outside the start */
void mfs_deploy_mount(struct mfs_cm *cm, struct mfs_node *n);

#endif
