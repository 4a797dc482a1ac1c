/* `memefs mount`: one mount of a deployment, from connecting to its Local Manager to the unmount.
 */
#ifndef MFS_FUSE_MOUNT_MOUNT_H
#define MFS_FUSE_MOUNT_MOUNT_H

#include <stdbool.h>

#include "base/err.h"
#include "fuse/mount/options.h"

struct mfs_mount_config {
    const char *name;    /* of the deployment */
    const char *address; /* of lm ("unix:/path") or of cm ("HOST:PORT") */
    const char *secret;  /* path of the deployment's secret */
    const char *path;    /* mount point, absolute; made if it is not there */
    uint32_t node; /* whose lm serves it, as `address` says; MFS_NO_NODE: none's, or unknown */
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
