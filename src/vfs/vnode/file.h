/* An open file: a handle on a vnode, with its own read-ahead. */
#ifndef MFS_VFS_VNODE_FILE_H
#define MFS_VFS_VNODE_FILE_H

#include <fcntl.h>
#include <stdatomic.h>

#include "vfs/vnode/vnode.h"

struct mfs_file {
    struct mfs_vnode *node; /* a reference */
    int flags;              /* as opened */
    bool created;           /* by this open */
    bool bypasses;          /* the kernel's pages; set before the first use */
    uint64_t made_in;       /* the directory of what has no name; 0: of any other file */
    uid_t made_by_uid;      /* likewise, who has made it */
    gid_t made_by_gid;
    uint64_t removals; /* vfs->removals when it was opened */
    uint64_t errors;   /* of written data, that it was told of; for mfs_vnode_flush only */

    /* Pages: set at the open, then only read. */
    struct mfs_pages_ticket ticket;
    atomic_bool unadopted; /* the first request that proves the open adopts the ticket */

    /* Content that this handle keeps; true while the vnode's generation is the one noted. */
    struct mfs_readahead *ra; /* NULL for a write-only handle */
    atomic_uint_fast64_t ra_generation;
    void *head;      /* a small file's content as it came along with the open, until it was read */
    size_t head_len; /* head is guarded by node->lock */
    uint64_t head_generation;

    uint64_t read_mark;              /* mfs_meta_read_mark before it was opened */
    _Atomic(struct mfs_read *) read; /* which its release ends; NULL: that does not count */

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
