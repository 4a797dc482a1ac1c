/* An entry of a queue of FUSE over io_uring: the memory to which the kernel puts one request, and
 * from which it takes the reply; and the commands with which it gets them.
 *
 *   headers   | in or out header | operation's header | length of the payload |
 *   room      for both headers once more, directly before …
 *   payload   all the rest of a request; all of a reply behind its header
 *
 * An entry is the kernel's from the submission of a command until that is complete. */
#ifndef MFS_FUSE_URING_ENTRY_H
#define MFS_FUSE_URING_ENTRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <linux/io_uring.h>

/* Who has an entry that holds a request. */
enum mfs_uring_state {
    MFS_URING_SERVED,   /* the thread that serves it */
    MFS_URING_LEFT,     /* nobody: that has returned, and another thread will reply */
    MFS_URING_ANSWERED, /* the reply is there before that has returned */
};

struct mfs_uring_entry {
    char *memory;
    uint16_t queue;
    _Atomic uint64_t unique; /* of the request; 0: none */
    uint64_t commit_id;      /* … of the last reply that was submitted; 0: none was */
    _Atomic enum mfs_uring_state state;
    bool admitted;  /* see fuse/kernel/admission.h */
    int64_t since;  /* mono: it has come */
    bool beside;    /* it is served though `most` others are */
    char *request;  /* as it would have come from /dev/fuse */
    size_t length;  /* of that */
    size_t touched; /* bytes of the payload, since they were given back */
    struct iovec area[2];
    struct mfs_uring_entry *prev, *next; /* in one list at most */
};

size_t mfs_uring_entry_size(void); /* bytes of memory; a multiple of 4 KiB */
void mfs_uring_entry_init(struct mfs_uring_entry *e, char *memory, uint16_t queue);

/* A request has come: finds it, sets `unique`. -EIO: it makes no sense. */
int mfs_uring_entry_take(struct mfs_uring_entry *e);

/* The reply to what makes no sense: EIO. Sets `unique`, too. */
void mfs_uring_entry_refuse(struct mfs_uring_entry *e);

/* EINTR: its caller was killed before it was served. */
void mfs_uring_entry_drop(struct mfs_uring_entry *e);

/* Puts a reply as for /dev/fuse to the entry. */
void mfs_uring_entry_reply(struct mfs_uring_entry *e, const struct iovec *iov, int count);

/* Gives memory back that the last requests have touched, but for `kept` bytes. */
void mfs_uring_entry_trim(struct mfs_uring_entry *e, size_t kept);

/* Fills in a command, of which the completion carries `e`: to wait for a first request; or to take
 * the reply, after which unique is 0, and to wait for the next request. When the kernel had no
 * memory for the last one, it is the same once more. */
void mfs_uring_entry_command(struct mfs_uring_entry *e, struct io_uring_sqe *sqe);

#endif
