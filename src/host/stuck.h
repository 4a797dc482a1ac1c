/* Mounts of FUSE clients that have been killed and can't end. A thread of such a client waits in
 * the kernel, uninterruptibly, for a page that is locked until a request is answered, which only
 * the client could have done. The kernel gives up a connection when nobody has it open any more;
 * that thread has. So the mount hangs, for all who use it, until somebody breaks the connection. */
#ifndef MFS_HOST_STUCK_H
#define MFS_HOST_STUCK_H

#include <stdbool.h>

#include "host/proc.h"

/* Breaks the connection of the FUSE mount on `path` if `client`, whose it is, is ending, and the
 * mount does not answer for a second: whoever waits for it gets ENOTCONN or ECONNABORTED then, and
 * the client ends. True: it was so. Blocks. */
bool mfs_stuck_release(const struct mfs_proc *client, const char *path);

#endif
