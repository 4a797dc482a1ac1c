/* The place where the file system appears: made ready before, tuned after, freed at the end. */
#ifndef MFS_FUSE_MOUNT_MOUNTPOINT_H
#define MFS_FUSE_MOUNT_MOUNTPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Makes the directory if it is not there; a mount whose client died is taken away, a living one is
 * -EBUSY. What is there and does not answer within seconds is -EBUSY (one of ours) or -ETIMEDOUT.
 * Blocks. */
int mfs_mountpoint_prepare(const char *path, struct mfs_err *err);

/* Is there anything in the directory, which a mount will cover? Blocks for seconds at most. */
bool mfs_mountpoint_covers(const char *path);

/* Waits until the mount answers and raises its read-ahead to `bytes` (as root). *device names the
 * mount for the functions below. 0 or -errno. */
int mfs_mountpoint_tune(const char *path, uint32_t bytes, dev_t *device);

/* Unmounts if that device is (still) mounted there: now if no process uses it, else it goes out of
 * sight (*later). 0 or -errno. As root. */
int mfs_mountpoint_release(const char *path, dev_t device, bool *later);

#endif
