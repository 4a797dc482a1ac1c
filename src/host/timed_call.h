/* Calls with a time limit. A system call that may hang (any look at a dead mount) is made in a
 * child process, so that it can be abandoned. */
#ifndef MFS_HOST_TIMED_CALL_H
#define MFS_HOST_TIMED_CALL_H

#include <stdint.h>
#include <sys/types.h>

/* Runs call(arg) in a forked child and returns its result (0 or a negative errno above -256), or
 * -ETIMEDOUT when it took longer than ns: then the child is killed. Blocks. `call` may use system
 * calls only: no allocation, no locks, no log. */
int mfs_timed_call(int (*call)(const void *arg), const void *arg, int64_t ns);

/* The same in two steps, for several at once. */
struct mfs_timed_call {
    pid_t pid;
    int fd;
};

/* 0, and `end` must follow, or a negative errno. */
int mfs_timed_call_begin(struct mfs_timed_call *b, int (*call)(const void *arg), const void *arg);

/* Waits until that time (mfs_clock_mono) for the result. A child that is too late is killed, and
 * its end is awaited for another `grace` ns: in an uninterruptible wait it can't even be killed.
 */
int mfs_timed_call_end(struct mfs_timed_call *b, int64_t until, int64_t grace);

/* Calls to make with a limit; arg is a path. */
int mfs_timed_stat(const void *path);     /* stat(2) */
int mfs_timed_statfs(const void *path);   /* statfs(2), which no cache answers; -ENODEV: no FUSE */
int mfs_timed_is_empty(const void *path); /* -ENOTEMPTY: the directory is not */
int mfs_timed_detach(const void *path);   /* mfs_mount_detach */

#endif
