/* What `cm stop` would lose. */
#ifndef MFS_CM_CLI_STOP_ASK_H
#define MFS_CM_CLI_STOP_ASK_H

#include "args/paths.h"

/* On a terminal, where the deployment holds files: says how many are lost, and asks. False: they
 * are to stay. Blocks for some seconds when partitions can't be reached, and for the answer. */
bool mfs_stop_may(const struct mfs_paths *p);

#endif
