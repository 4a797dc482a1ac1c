/* Ending file system clients and their mounts, whatever state they are in. Blocks, bounded: for a
 * worker thread. */
#ifndef MFS_LM_MOUNT_UNMOUNT_H
#define MFS_LM_MOUNT_UNMOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/bind_mounts.h"
#include "host/proc.h"
#include "proto/messages.h"

struct mfs_unmount {
    struct mfs_proc client;
    char path[MFS_PATH_MAX]; /* where it is mounted, "" when unknown */
    bool gone;               /* result: neither process nor mount is left */
    bool forced;             /* result: it had to be killed */
};

/* Asks the clients to flush and exit (SIGTERM) and waits up to `grace` ns for all; what is left
 * then has its connection to the kernel aborted, which lets blocked programs go on with errors, and
 * is killed; dead mounts are detached, and so are binds of them. Takes at most grace + 6 s. Returns
 * the number of those not gone. */
size_t mfs_unmount(struct mfs_unmount *u, size_t n, int64_t grace);

/* Makes `path` fit to be mounted on: a dead FUSE mount on it is detached, after its binds have been
 * noted (NULL: they are not), and a missing directory made. 0, -EBUSY when something alive is
 * mounted there already, or a negative errno. */
int mfs_unmount_prepare(const char *path, struct mfs_bind_mounts *binds);

/* Detaches what a dead client left at path, if it did. 0 or a negative errno. */
int mfs_unmount_dead(const char *path);

#endif
