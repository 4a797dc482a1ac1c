/* A start whose cm has been killed: no other cm will be told of the nodes that it has asked for. */
#ifndef MFS_CM_CLI_GIVE_BACK_H
#define MFS_CM_CLI_GIVE_BACK_H

#include "args/paths.h"

/* Has a new cm give them back, and says on stderr what could not be. Nothing to do where nodes are
 * processes of this machine, or the start had an end. With the start's lock held; blocks, bounded.
 */
void mfs_give_back(const struct mfs_paths *p);

#endif
