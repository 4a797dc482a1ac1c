/* The last attributes that the kernel got of each inode. They answer GETATTR for an inode that is
 * gone from the store while the kernel still references it: the working directory of a process,
 * removed through another mount; a file that was replaced between a path's look-up and its stat. A
 * local file system shows such an inode with no link, and so does this one.
 *
 * The table has a fixed size and evicts the least recently used: it has room for some 16,000
 * directories and 8,000 other inodes, and neither kind evicts the other. An inode that is gone and
 * evicted is stale (ESTALE) to the kernel. Any thread may call; nothing blocks. */
#ifndef MFS_FUSE_KERNEL_LAST_ATTRS_H
#define MFS_FUSE_KERNEL_LAST_ATTRS_H

#include <stdbool.h>

#include "meta/attr.h"

struct mfs_last_attrs;

struct mfs_last_attrs *mfs_last_attrs_create(void); /* NULL: ENOMEM */
void mfs_last_attrs_destroy(struct mfs_last_attrs *l);

void mfs_last_attrs_remember(struct mfs_last_attrs *l, const struct mfs_attr *attr);

/* What is known of an inode that is gone, its link count 0. False: nothing; *attr stays. */
bool mfs_last_attrs_recall(struct mfs_last_attrs *l, uint64_t ino, struct mfs_attr *attr);

#endif
