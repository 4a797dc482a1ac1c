/* Mounts of FUSE clients that were killed and cannot end. A thread of such a client waits in the
 * kernel, uninterruptibly, for a page that is locked until a request is answered, which only the
 * client could have done. The kernel aborts a connection when no process has it open any more; that
 * thread has. So the mount hangs, for all that use it, until the connection is aborted. */
#ifndef MFS_HOST_HUNG_MOUNT_H
#define MFS_HOST_HUNG_MOUNT_H

#include <stdbool.h>

#include "host/proc.h"

/* Aborts the connection of the FUSE mount on `path` if `client`, which serves it, is ending, and
 * the mount does not answer for a second: all that waits for it gets ENOTCONN or ECONNABORTED, and
 * the client ends. True: it was aborted. Blocks. */
bool mfs_hung_mount_abort(const struct mfs_proc *client, const char *path);

#endif
