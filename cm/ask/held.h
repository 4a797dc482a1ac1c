/* How much a deployment holds. */
#ifndef MFS_CM_ASK_HELD_H
#define MFS_CM_ASK_HELD_H

#include <stdbool.h>
#include <stdint.h>

#include "args/paths.h"

struct mfs_held {
    uint64_t files; /* and directories, but for the root */
    uint64_t bytes; /* of memory, beyond what empty partitions use; 0: cm does not tell */
    bool counted;   /* every partition has told; else `files` means nothing */
};

/* False: it does not run, so nothing is known. Whether its cm lives does not matter. Blocks, some
 * seconds where partitions can't be reached. */
bool mfs_held_look(const struct mfs_paths *p, struct mfs_held *h);

#endif
