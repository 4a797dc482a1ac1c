/* Does anything of a deployment answer, whose processes can't be seen from here? */
#ifndef MFS_CM_ASK_REACH_H
#define MFS_CM_ASK_REACH_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/table.h"

/* Does any partition's address accept a connection? One that hangs does so, too. Asks all of them
 * at once, for which it lets this process have as many open files as it may. Blocks, at most
 * timeout ns. False for no table. */
bool mfs_reach_any(const struct mfs_table *t, int64_t timeout);

#endif
