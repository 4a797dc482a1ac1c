/* Sending the table to Local Managers and to cm's own clients: what a node lacks of it, where it
 * has had one from this cm on this connection; else the whole. A table of 40,000 partitions is 8
 * MB, and each move of a partition makes a new one for all nodes. */
#ifndef MFS_CM_NODES_TABLES_H
#define MFS_CM_NODES_TABLES_H

#include "cm/nodes/control.h"

int mfs_tables_init(struct mfs_cm *cm); /* 0 or -ENOMEM */
/* Before the nodes' connections and what has asked end: what waits fails with -ECONNABORTED, and
 * nothing waits any more. */
void mfs_tables_end(struct mfs_cm *cm);
void mfs_tables_fini(struct mfs_cm *cm); /* after the nodes' connections */

/* As mfs_node_ask with MFS_MSG_TABLE and the table of now; or, when it waits for its turn (whole
 * ones go to some nodes at a time), of then: the time counts from there. `done` gets no reply. */
int mfs_tables_ask(struct mfs_node *n, int64_t timeout,
                   void (*done)(void *arg, const struct mfs_err *err, const void *reply),
                   void *arg);

/* The same to a client of cm's own. */
int mfs_tables_ask_client(struct mfs_cm *cm, struct mfs_cm_subscriber *s, int64_t timeout,
                          void (*done)(void *arg, const struct mfs_err *err, const void *reply),
                          void *arg);

#endif
