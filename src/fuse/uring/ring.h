/* An io_uring of one thread (io_uring(7)), for commands to one file. Only the thread that opened it
 * may use it. */
#ifndef MFS_FUSE_URING_RING_H
#define MFS_FUSE_URING_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include <linux/io_uring.h>

/* The fields are ring.c's. */
struct mfs_ring {
    int fd;
    void *rings, *sqes;
    size_t rings_size, sqes_size;
    unsigned *sq_head, *sq_tail, sq_mask, entries;
    unsigned *cq_head, *cq_tail, cq_mask;
    const struct io_uring_cqe *cqes;
    unsigned waiting; /* prepared and not yet submitted */
};

/* Room for `entries` prepared commands and `completions` that nobody has looked at (more are kept,
 * at a cost); powers of two. `file` becomes number 0 of its registered files. 0 or -errno: -ENOSYS,
 * -EPERM when it is forbidden here, -EOPNOTSUPP when the kernel is too old. */
int mfs_ring_open(struct mfs_ring *r, unsigned entries, unsigned completions, int file);
void mfs_ring_close(struct mfs_ring *r); /* what is under way is cancelled, in the background */

/* The next command to fill in: all zeros, 128 bytes. What was prepared is submitted when there is
 * no room; NULL: the kernel takes nothing. */
struct io_uring_sqe *mfs_ring_next(struct mfs_ring *r);

/* Submits what is prepared, and if `wait`, waits until a completion is there or `ns` have passed
 * (-1: without end). 0: all was submitted, though there may be no completion all the same; -EAGAIN
 * or -EBUSY: the kernel has no memory now, the rest stays prepared; -EINTR: a signal came; -ETIME;
 * another -errno. */
int mfs_ring_enter(struct mfs_ring *r, bool wait, int64_t ns);

/* Takes a completion, or just its result; false: there is none. */
bool mfs_ring_take(struct mfs_ring *r, uint64_t *data, int *result);
bool mfs_ring_peek(const struct mfs_ring *r, int *result);
bool mfs_ring_is_empty(const struct mfs_ring *r); /* no completion is there */

#endif
