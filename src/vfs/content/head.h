/* The content of a small file, fetched along with its open, so that reading it costs no round trip.
 */
#ifndef MFS_VFS_CONTENT_HEAD_H
#define MFS_VFS_CONTENT_HEAD_H

#include "vfs/vnode/file.h"

/* Prepare asks for it, unless the kernel is likely to have it; keep takes what came over; drop
 * frees it. */
void mfs_file_prepare_head(struct mfs_file *f, struct mfs_head *head);
void mfs_file_keep_head(struct mfs_file *f, const struct mfs_head *head);
void mfs_file_drop_head(struct mfs_file *f);

/* Serves a read of [off, off+len), which ends at or before `size`, from the head; false: it can't.
 */
bool mfs_file_read_head(struct mfs_file *f, uint64_t off, size_t len, uint64_t size, void *buf);

#endif
