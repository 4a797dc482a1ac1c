/* What the kernel was last replied of each inode.
 *
 * Its attributes answer GETATTR for an inode that is gone from the store while the kernel still
 * references it: the working directory of a process, removed through another mount; a file that was
 * replaced between a path's look-up and its stat. A local file system shows such an inode with no
 * link, and so does this one. The ends of regular files: see sizes.h.
 *
 * The table has a fixed size and evicts the least recently used: it has room for some 16,000
 * directories and 8,000 other inodes, and neither kind evicts the other. An inode that is gone and
 * evicted is stale (ESTALE) to the kernel; a file that was evicted counts as one whose size was
 * never replied. Any thread may call; nothing blocks. */
#ifndef MFS_FUSE_KERNEL_REPLIED_H
#define MFS_FUSE_KERNEL_REPLIED_H

#include <stdbool.h>
#include <stdint.h>

#include "meta/attr.h"

struct mfs_replied;

struct mfs_replied *mfs_replied_create(void); /* NULL: ENOMEM */
void mfs_replied_destroy(struct mfs_replied *r);

/* A reply has these, now. */
void mfs_replied_attrs(struct mfs_replied *r, const struct mfs_attr *attr, int64_t now);

/* What is known of an inode that is gone, its link count 0. False: nothing; *attr stays. */
bool mfs_replied_recall(struct mfs_replied *r, uint64_t ino, struct mfs_attr *attr);

/* What it was last replied of one that is there. */
bool mfs_replied_last(struct mfs_replied *r, uint64_t ino, struct mfs_attr *attr);

/* mfs_sizes_* of the inode. */
void mfs_replied_extended(struct mfs_replied *r, uint64_t ino, uint64_t end);
bool mfs_replied_may_extend(struct mfs_replied *r, uint64_t ino, uint64_t end, int64_t seen);
void mfs_replied_invalidated(struct mfs_replied *r, uint64_t ino, int64_t now);
bool mfs_replied_may_be_stale(struct mfs_replied *r, uint64_t ino, uint64_t size, int64_t now);

#endif
