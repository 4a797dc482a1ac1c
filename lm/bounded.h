/* A call that may hang (any look at a dead mount) made in a child process, so that it can be given
 * up after a while. */
#ifndef MFS_LM_BOUNDED_H
#define MFS_LM_BOUNDED_H

#include <stdint.h>

/* Runs call(arg) in a forked child and returns its result (0 or a negative errno above -256), or
 * -ETIMEDOUT when it took longer than ns: then the child is killed. Blocks. `call` may use system
 * calls only: no allocation, no locks, no log. */
int mfs_bounded(int (*call)(const void *arg), const void *arg, int64_t ns);

/* Calls for it; arg is a path. */
int mfs_bounded_stat(const void *path);   /* stat(2) */
int mfs_bounded_detach(const void *path); /* mfs_mount_detach */

#endif
