/* Which bytes of a file below its end are content, and which read as zeros whatever stripes hold:
 * those at or beyond its end of data, and its voids (decisions/0020). */
#ifndef MFS_VFS_CONTENT_H
#define MFS_VFS_CONTENT_H

#include "vfs/vnode.h"

/* An mfs_content_fn for a struct mfs_vnode; one round trip when the file has voids that are not
 * known as of its version. Any thread. */
int mfs_content_known(void *vnode, uint64_t off, size_t len, struct mfs_ranges *content);

#endif
