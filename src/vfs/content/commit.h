/* What write-behind has stored becoming known, also when another mount has cut the file since.
 *
 * A truncate frees stripes, and may free what this mount has stored and not yet committed. As
 * truncates are counted in the inode's record, a commit says how many there had been before the
 * first of its bytes was stored; when there are more by now, only what is still in the stripes is
 * committed: what was cut off neither comes back as zeros nor makes the file longer again. */
#ifndef MFS_VFS_CONTENT_COMMIT_H
#define MFS_VFS_CONTENT_COMMIT_H

#include "vfs/vnode/vnode.h"

/* Before a write: what is stored from now on is stored after all truncates that this mount knows
 * of, if nothing is on its way. Any thread. */
void mfs_vnode_begin_write(struct mfs_vnode *v, struct mfs_dirty *d);

/* What may be stored below `end` and is no content goes with the file from now on, or with the next
 * cut: the end of data becomes at least that. 0 and the attributes, or a negative errno. */
int mfs_vnode_leave_void(struct mfs_vnode *v, uint64_t end, struct mfs_attr *attr);

/* The write-behind of the inode, which commits so; made now if need be (NULL: ENOMEM). */
struct mfs_dirty *mfs_vnode_dirty(struct mfs_vnode *v);

#endif
