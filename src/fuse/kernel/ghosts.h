/* The last attributes that the kernel was told of each inode, for those that are gone from the
 * store but not from the kernel: the working directory of a process, removed through another mount;
 * a file replaced between a path's look-up and its stat. A local file system shows them with no
 * link, and so do we.
 *
 * A table of a fixed size that forgets what has not been used for longest: some 16,000 directories,
 * for which only other directories are forgotten, and 8,000 other inodes. An inode that is gone and
 * forgotten is stale to the kernel. Any thread; does not block. */
#ifndef MFS_FUSE_KERNEL_GHOSTS_H
#define MFS_FUSE_KERNEL_GHOSTS_H

#include <stdbool.h>

#include "meta/attr.h"

struct mfs_ghosts;

struct mfs_ghosts *mfs_ghosts_create(void); /* NULL: ENOMEM */
void mfs_ghosts_destroy(struct mfs_ghosts *g);

void mfs_ghosts_remember(struct mfs_ghosts *g, const struct mfs_attr *attr);

/* What is known of an inode that is gone, its link count 0. False: nothing; *attr stays. */
bool mfs_ghosts_recall(struct mfs_ghosts *g, uint64_t ino, struct mfs_attr *attr);

#endif
