/* Requests by FUSE over io_uring (Linux 6.14, Documentation/filesystems/fuse/fuse-io-uring.rst)
 * instead of by read(2) and write(2) on /dev/fuse: a reply and the wait for the next request are
 * one system call, and no byte of data is copied on the way to libfuse.
 *
 * The kernel has a queue for each processor. A request goes to the *entry* (memory for one request)
 * of its caller's processor that became free last, and the thread that submitted that entry gets
 * it; when no entry of the queue is free, it waits until the reply in one is taken. So:
 *
 *   worker       has a ring for one entry: that of the last request it has served. It waits there
 *                for the next one, and has no free entry while it serves. The kernel takes the
 *                worker that was the last to begin its wait. A request that another thread will
 *                answer keeps its entry, and the worker goes idle.
 *   dispatcher   one thread, with a ring for the entries in reserve of all queues. A request that
 *                finds no waiting worker on its processor comes there and is handed over to an idle
 *                worker, or a new one, whose entry it becomes. The dispatcher adds entries whenever
 *                a queue has few in reserve, so that as many requests as memory permits can be
 *                under way (blocked locks, for one).
 *
 * The kernel does not give what waits in a queue to entries that are added. So when there may be
 * any, a request of our own (nudge.h) goes through that queue: its reply makes the kernel look, and
 * so on until a reply finds none.
 *
 * FORGET, INTERRUPT and INIT come, and notifications go, by /dev/fuse, as does everything when the
 * kernel refuses. */
#ifndef MFS_FUSE_URING_URING_H
#define MFS_FUSE_URING_URING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "fuse/mount/workers.h"

struct mfs_uring;

struct mfs_uring_source {
    const char *path;  /* of the mount */
    unsigned most;     /* requests that are served at once, beside a few that are urgent */
    unsigned admitted; /* … of those that may_wait, see fuse/kernel/admission.h */
    size_t kept;       /* bytes that the entries of waiting workers may keep resident, over all */
    bool (*may_wait)(const char *request, size_t len);
    enum mfs_workers_urgency (*urgency)(void *arg, const char *request, size_t len);
    void (*serve)(void *arg, char *request, size_t len);
    void *arg;
};

/* Opens the dispatcher's ring. 0 or -errno: -ENOSYS or -EPERM: this process may not use io_uring;
 * -EOPNOTSUPP: the kernel is too old. `fd`: of /dev/fuse. */
int mfs_uring_create(struct mfs_uring **u, int fd, const struct mfs_uring_source *source);

/* The kernel has been told by the reply to INIT, and has it: gives it the entries, without which it
 * sends no request. Any thread; at once. */
void mfs_uring_begin(struct mfs_uring *u);

/* Takes a reply, if it is to a request that came by a ring, or EAGAIN to an interrupt of one;
 * false: it belongs to /dev/fuse. Any thread. */
bool mfs_uring_reply(struct mfs_uring *u, const struct iovec *iov, int count);

/* The kernel has the reply that the calling thread has just given, when this returns; else it has
 * it when `serve` has returned. */
void mfs_uring_flush(struct mfs_uring *u);

/* Returns when each request that was taken is served or left to another thread; the rings, which
 * keep the device open, are closed. Later replies go nowhere. */
void mfs_uring_stop(struct mfs_uring *u);    /* takes NULL */
void mfs_uring_destroy(struct mfs_uring *u); /* stopped; nobody replies any more. Takes NULL */

#endif
