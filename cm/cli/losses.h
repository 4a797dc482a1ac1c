/* Whether any file has lost bytes just now: for checkpoints, which must not take the place of one
 * that has these bytes. */
#ifndef MFS_CM_CLI_LOSSES_H
#define MFS_CM_CLI_LOSSES_H

#include <stdbool.h>

#include "args/paths.h"
#include "base/err.h"

/* Has `memefs lost` look through all that is stored; blocks until it has found one, or the whole,
 * but no longer than some minutes. 0 or a negative errno with the reason. */
int mfs_losses_find(const struct mfs_paths *paths, bool *any, struct mfs_err *err);

#endif
