/* Directories at their home. */
#ifndef MFS_PARTITION_NAMES_DIR_H
#define MFS_PARTITION_NAMES_DIR_H

#include "partition/inode.h"

/* Has the directory's inode bits of other partitions than this one (2 bytes, big-endian)? */
bool mfs_dir_is_spread(const struct mfs_inode *i, struct mfs_span here);

/* The inode of a directory that has no name any more goes, or stays for the clients that have it
 * open; the time has 12 bytes. */
void mfs_dir_kill(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_span time);

#endif
