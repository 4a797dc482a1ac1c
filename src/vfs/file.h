/* An open file: a handle on a vnode, with its own read-ahead. */
#ifndef MFS_VFS_FILE_H
#define MFS_VFS_FILE_H

#include <fcntl.h>

#include "vfs/vnode.h"

struct mfs_file {
    struct mfs_vnode *node; /* a reference */
    int flags;              /* as opened */
    bool bypasses;          /* the kernel's pages; set before the first use */
    uint64_t removals;      /* vfs->removals when it was opened */
    uint64_t errors;        /* of written data, that it was told of; for mfs_vnode_flush only */

    /* Pages: set at the open, then only read. */
    struct mfs_pages_ticket ticket;
    atomic_bool unadopted; /* the first request that proves the open adopts the ticket … */
    atomic_bool shown;     /* … and proves that the kernel knows a new file's attributes */

    /* Content that this handle keeps; true while the vnode's generation is the one noted. */
    struct mfs_readahead *ra; /* NULL for a write-only handle */
    atomic_uint_fast64_t ra_generation;
    void *head;      /* a small file's content as it came along with the open, until it was read */
    size_t head_len; /* head is guarded by node->lock */
    uint64_t head_generation;

    struct mfs_file *prev, *next; /* of node->files, guarded by node->lock */

    /* The owner of this open file's flock, the same at all times: a number of ours, as the kernel
     * gives its own to the next open file while the release of this one is on its way. And whether
     * there may be one; guarded by node->lock. */
    uint64_t flock_owner;
    bool flocked;

    /* The owners that have, or had, fcntl locks through this handle (vfs/locks/lock_owners.h);
     * guarded by node->lock.
     */
    struct mfs_owner *owners;
};

void mfs_file_free(struct mfs_file *f); /* only memory; keeps the vnode's reference count */

/* A small file's content comes along with its open: prepare asks for it, unless the kernel is
 * likely to have it; keep takes what came over; drop frees it. */
void mfs_file_prepare_head(struct mfs_file *f, struct mfs_head *head);
void mfs_file_keep_head(struct mfs_file *f, const struct mfs_head *head);
void mfs_file_drop_head(struct mfs_file *f);

/* Serves a read of [off, off+len), which ends at or before `size`, from the head; false: it can't.
 */
bool mfs_file_read_head(struct mfs_file *f, uint64_t off, size_t len, uint64_t size, void *buf);

/* Takes a lock if none is in conflict, as mfs_vfs_setlk without its rule for conversions. `wait`
 * (may be NULL): of a waiter for this fcntl lock; ended when the lock is taken, else it learns
 * which lock is in conflict. */
int mfs_file_try_lock(struct mfs_file *f, const struct mfs_lock *lock, bool flock,
                      struct mfs_meta_wait *wait, mfs_vfs_lock_fn *done, void *arg);

/* close(2) by this owner: its fcntl locks on the file go, through whichever handle it took them. */
int mfs_file_unlock_owner(struct mfs_file *f, uint64_t owner);

/* close(2) by this owner, perhaps the last: marks what mfs_file_unlock_rest may soon give back. */
void mfs_file_closing(struct mfs_file *f, uint64_t owner);

/* The last close: locks that belong to the open file description (F_OFD_SETLK) are left. */
void mfs_file_unlock_rest(struct mfs_file *f);

/* Called by every request through the handle but release. */
void mfs_file_answer_taken(struct mfs_file *f);

static inline bool mfs_flags_write(int flags)
{
    return (flags & O_ACCMODE) != O_RDONLY;
}

static inline bool mfs_flags_read(int flags)
{
    return (flags & O_ACCMODE) != O_WRONLY;
}

#endif
