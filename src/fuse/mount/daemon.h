/* Becoming a daemon only when the work is known to go well, so that its caller hears of errors. */
#ifndef MFS_FUSE_MOUNT_DAEMON_H
#define MFS_FUSE_MOUNT_DAEMON_H

#include "base/err.h"

/* Forks. In the parent: waits until the child calls mfs_daemon_ready or ends, and returns 1, or a
 * negative errno with the child's reason. In the child: 0, with *channel to give to
 * mfs_daemon_ready, in a session of its own. Before any thread is started. */
int mfs_daemon_fork(int *channel, struct mfs_err *err);

/* In the child: err NULL for success. Its standard streams become /dev/null. -1 is fine. */
void mfs_daemon_ready(int channel, const struct mfs_err *err);

#endif
