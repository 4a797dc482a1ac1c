/* `memefs mount`: one mount of a deployment, from connecting to its Local Manager to the unmount.
 */
#ifndef MFS_FUSE_MOUNT_MOUNT_H
#define MFS_FUSE_MOUNT_MOUNT_H

#include <stdbool.h>

#include "args/paths.h"
#include "base/err.h"
#include "fuse/mount/options.h"

struct mfs_mount_config {
    const struct mfs_paths *paths; /* of the deployment */
    const char *lm, *cm;           /* where its managers are: see client/client.h */
    const char *path;              /* mount point, absolute; made if it is not there */
    bool foreground;
    const char *log; /* file, NULL: stderr */
    struct mfs_mount_options options;
};

/* Mounts and serves until the file system is unmounted or the process gets SIGTERM or SIGINT, or,
 * without a log file, SIGHUP; then everything dirty is stored and 0 is returned. Unless
 * `foreground` the caller's process returns as soon as the mount answers, and a child of it goes
 * on. A negative errno: *err says why. */
int mfs_mount_run(const struct mfs_mount_config *config, struct mfs_err *err);

#endif
