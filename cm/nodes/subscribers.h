/* Clients that are connected to cm itself, as no Local Manager runs where they are: each gets every
 * new table (push.h). Loop thread. */
#ifndef MFS_CM_NODES_SUBSCRIBERS_H
#define MFS_CM_NODES_SUBSCRIBERS_H

#include "cm/nodes/control.h"

/* Handlers of messages. */
void mfs_subscribers_on_hello(struct mfs_conn *c, uint64_t id, const void *body, void *arg);
void mfs_subscribers_on_ready(struct mfs_conn *c, uint64_t id, const void *body, void *arg);

/* A connection is gone, be it a subscriber's or not. */
void mfs_subscribers_hung_up(struct mfs_cm *cm, const struct mfs_conn *c);
void mfs_subscribers_fini(struct mfs_cm *cm);

#endif
