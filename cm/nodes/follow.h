/* A cm that began on another machine is not known to the nodes: it tells each Local Manager that is
 * not connected where it is, again and again, at the address and port that are recorded of it
 * (`control`). An answer may be that there is a cm of a higher term: then this one ends itself, and
 * touches nothing. Only where nodes are on other machines (provider/traits.h). The loop's thread.
 */
#ifndef MFS_CM_NODES_FOLLOW_H
#define MFS_CM_NODES_FOLLOW_H

#include "cm/nodes/control.h"

int mfs_follow_begin(struct mfs_cm *cm); /* 0 or -ENOMEM */
void mfs_follow_fini(struct mfs_cm *cm);

/* There is a cm of a higher term (`why`: what is known of it): an event, and the loop ends. */
void mfs_superseded(struct mfs_cm *cm, const char *why);

#endif
