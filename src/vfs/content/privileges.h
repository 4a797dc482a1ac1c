/* Set-user-ID, set-group-ID and capabilities of files, which a change of content takes away
 * (decisions/0030).
 *
 * The commit does so, at the inode's home and in the same step. That is not enough, as bytes are in
 * the stripes, where others may read them, before the commit. So a writer first takes away the
 * privileges that its mount knows of. A call that gives privileges to a file that another mount has
 * open lets that mount commit what it has, and know of them, before the call returns. A write that
 * was under way meanwhile is committed before it returns. */
#ifndef MFS_VFS_CONTENT_PRIVILEGES_H
#define MFS_VFS_CONTENT_PRIVILEGES_H

#include "vfs/vnode/vnode.h"

/* The content of the inode that these are attributes of is about to change: takes away what it has
 * of `drop` (MFS_DROP_*). At once when it has none. */
int mfs_privileges_drop(struct mfs_vfs *vfs, const struct mfs_attr *attr, uint32_t drop);

/* The same before a write to an open file, by what this mount knows. */
int mfs_privileges_begin_write(struct mfs_vnode *v, uint32_t drop);

/* After it: may the file have got any since the write began? Then it is to be flushed. */
bool mfs_privileges_appeared(struct mfs_vnode *v, uint32_t drop);

/* This mount is about to give some to the file: what it has written before counts as written
 * before, also in mappings. */
void mfs_privileges_before_grant(struct mfs_vnode *v);

/* An mfs_meta_granted_fn. */
void mfs_privileges_granted(void *vfs, uint64_t ino, uint64_t version, void (*done)(void *done_arg),
                            void *done_arg);

#endif
