/* Another cm, on the machine of one of the nodes, takes over, and this one ends: as an operator has
 * asked for (`cm start --adopt`), or by itself, when it is told to end (SIGTERM) and nodes on other
 * machines stay. */
#ifndef MFS_CM_LIFE_HANDOVER_H
#define MFS_CM_LIFE_HANDOVER_H

#include "cm/nodes/control.h"

/* For the service: HANDOVER. */
void mfs_handover_on_ask(struct mfs_conn *c, uint64_t id, const void *body, void *arg);

/* For the service: ADOPT, of an operator: as mfs_handover_begin, but what can't be fails, and
 * nothing ends then. Answered when the state has been given away. */
void mfs_handover_on_leave(struct mfs_conn *c, uint64_t id, const void *body, void *arg);

/* Has a node that stays start a cm, when it has become known which ones leave: one after another,
 * until one has taken over. Is none left, this cm ends alone, and the nodes go on; are there none
 * to begin with, the deployment is stopped. False: that can't be, as all is on this machine. */
bool mfs_handover_begin(struct mfs_cm *cm);

void mfs_handover_fini(struct mfs_cm *cm);

#endif
