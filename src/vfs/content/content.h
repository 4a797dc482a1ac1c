/* Which bytes of a file below its end are content, and which read as zeros whatever stripes hold:
 * those at or beyond its end of data, and its voids (decisions/0020). */
#ifndef MFS_VFS_CONTENT_CONTENT_H
#define MFS_VFS_CONTENT_CONTENT_H

#include "vfs/vnode/vnode.h"

/* An mfs_content_fn for a struct mfs_vnode; one round trip when the file has voids that are not
 * known as of its version. Any thread. */
int mfs_content_known(void *vnode, uint64_t off, size_t len, struct mfs_ranges *content);

/* Where the next data, or the next hole, is (SEEK_DATA, SEEK_HOLE): in whole blocks of the file, as
 * programs know it from others. *attr has just been fetched, nothing of the file is dirty. 0,
 * -ENXIO, or an error of asking. */
int mfs_content_seek(struct mfs_vnode *v, const struct mfs_attr *attr, uint64_t off, int whence,
                     uint64_t *result);

#endif
