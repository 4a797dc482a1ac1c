/* Copies of cm's state with the nodes, from which a cm on another machine can go on. An lm has the
 * state in which an instruction was decided before it gets that instruction, as both take the same
 * connection; the others have it within 50 ms, large ones within
 * a second. Only where nodes are on other machines
 * (provider/traits.h): else all is in cm.json. The loop's thread. */
#ifndef MFS_CM_NODES_COPIES_H
#define MFS_CM_NODES_COPIES_H

#include "cm/nodes/control.h"

int mfs_copies_init(struct mfs_cm *cm); /* 0 or -ENOMEM */
void mfs_copies_fini(struct mfs_cm *cm);

/* It has joined, with that copy. */
void mfs_copies_joined(struct mfs_node *n, const struct mfs_msg_join *m);

/* To the node, which is connected, if it has an older one. */
void mfs_copies_to(struct mfs_node *n);
/* To all that are connected and have an older one; hurry: but those that have yet to answer. */
void mfs_copies_send(struct mfs_cm *cm);
void mfs_copies_hurry(struct mfs_cm *cm);
/* The term is another one: nobody has a copy of it. */
void mfs_copies_anew(struct mfs_cm *cm);

/* For how long its copy has been an old one, ms; 0: it is the newest, or there are none. */
uint64_t mfs_copies_behind(const struct mfs_node *n, int64_t now);

/* The state as it was saved last, as text: ours. NULL: no memory. */
const char *mfs_copies_text(struct mfs_cm *cm);

#endif
