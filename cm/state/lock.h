/* One `cm start` or `cm stop` of a deployment at a time: flock on its state directory. */
#ifndef MFS_CM_STATE_LOCK_H
#define MFS_CM_STATE_LOCK_H

#include <stdbool.h>

#include "base/err.h"
#include "args/paths.h"

/* Waits at most 90 s for another command that is at work. Returns a descriptor to close (which
 * unlocks), or a negative errno: -ENOENT when there is no directory and `create` is false, -EPERM
 * when others have a hand in it. The paths are without symbolic links from then on
 * (mfs_paths_open). */
int mfs_lock_take(struct mfs_paths *p, bool create, struct mfs_err *err);

#endif
