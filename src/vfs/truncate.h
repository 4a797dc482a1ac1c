/* What comes before a file's end is moved back: shared by truncate and by open with O_TRUNC. */
#ifndef MFS_VFS_TRUNCATE_H
#define MFS_VFS_TRUNCATE_H

#include "vfs/vnode.h"

struct mfs_truncation {
    uint64_t size;    /* that the file is to have */
    uint64_t trimmed; /* for mfs_meta_truncate */
    int64_t alloc;    /* likewise */
    bool forgot;      /* written bytes that nobody else knew of */
    bool trims;       /* stripes may have been freed */
};

/* Forgets dirty bytes at or beyond t->size, flushes the others, and frees the stripes 1 … beyond
 * it. `v` is NULL when the inode is not open here. -ECANCELED from mfs_meta_truncate: prepare
 * again, up to MFS_TRUNCATE_TRIES times, and the sums go on. After it the file still has its size,
 * with holes: a crash here leaks nothing. */
int mfs_truncate_prepare(struct mfs_vfs *vfs, uint64_t ino, struct mfs_vnode *v,
                         struct mfs_truncation *t);
#define MFS_TRUNCATE_TRIES 100

/* It has failed for good: who wrote what was forgotten is told, and nobody goes on with the pages
 * that he has of what may have been freed. */
void mfs_truncate_failed(struct mfs_vfs *vfs, uint64_t ino, struct mfs_vnode *v,
                         const struct mfs_truncation *t, int rc);

#endif
