/* Gives the partition table to all nodes and clients. */
#ifndef MFS_CM_NODES_PUSH_H
#define MFS_CM_NODES_PUSH_H

#include "cm/nodes/control.h"

/* Sends the state's table to every Local Manager that is connected and to cm's own clients, at
 * once. `done` is called, always later, when all have answered: with the time from the call to the
 * last one that has taken it, in ns, and with the number of those that have not (they are named in
 * the events; what connects later gets the table then). 0 or -ENOMEM, then nothing is sent. */
int mfs_push_table(struct mfs_cm *cm, void (*done)(void *arg, int64_t took, uint32_t missing),
                   void *arg);

#endif
