/* What comes before a file's end is moved back: shared by truncate and by open with O_TRUNC. */
#ifndef MFS_VFS_TRUNCATE_H
#define MFS_VFS_TRUNCATE_H

#include "vfs/vnode.h"

/* Forgets dirty bytes at or beyond `size`, flushes the others, and frees the stripes 1 … beyond it.
 * `v` is NULL when the inode is not open here. *trimmed, *alloc: for mfs_meta_truncate; what that
 * freed is added to *alloc. -ECANCELED from there: prepare again, up to MFS_TRUNCATE_TRIES times.
 * After it the file still has its size, with holes: a crash here leaks nothing. */
int mfs_truncate_prepare(struct mfs_vfs *vfs, uint64_t ino, struct mfs_vnode *v, uint64_t size,
                         uint64_t *trimmed, int64_t *alloc);
#define MFS_TRUNCATE_TRIES 100

#endif
