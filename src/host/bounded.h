/* Calls that may hang (any look at a dead mount) made in a child process, so that they can be given
 * up after a while. */
#ifndef MFS_HOST_BOUNDED_H
#define MFS_HOST_BOUNDED_H

#include <stdint.h>
#include <sys/types.h>

/* Runs call(arg) in a forked child and returns its result (0 or a negative errno above -256), or
 * -ETIMEDOUT when it took longer than ns: then the child is killed. Blocks. `call` may use system
 * calls only: no allocation, no locks, no log. */
int mfs_bounded(int (*call)(const void *arg), const void *arg, int64_t ns);

/* The same in two steps, for several at once. */
struct mfs_bounded_call {
    pid_t pid;
    int fd;
};

/* 0, and `end` must follow, or a negative errno. */
int mfs_bounded_begin(struct mfs_bounded_call *b, int (*call)(const void *arg), const void *arg);

/* Waits until that time (mfs_clock_mono) for the result. One that is too late is killed and waited
 * for another `patience` ns, as something in an uninterruptible wait can't even be killed. */
int mfs_bounded_end(struct mfs_bounded_call *b, int64_t until, int64_t patience);

/* Calls for it; arg is a path. */
int mfs_bounded_stat(const void *path);   /* stat(2) */
int mfs_bounded_statfs(const void *path); /* statfs(2), which no cache answers; -ENODEV: no FUSE */
int mfs_bounded_is_empty(const void *path); /* -ENOTEMPTY: the directory is not */
int mfs_bounded_detach(const void *path);   /* mfs_mount_detach */

#endif
