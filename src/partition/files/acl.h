/* Modes and access ACLs. */
#ifndef MFS_PARTITION_FILES_ACL_H
#define MFS_PARTITION_FILES_ACL_H

#include <stdbool.h>
#include <stdint.h>

#include "partition/span.h"

/* Does a program of that mode run as its owner, or as its group? */
bool mfs_mode_runs_as_another(uint32_t mode);

/* The inode's access ACL, if it has one, takes over a new mode: owner, mask (or group when there is
 * no mask), other. */
void mfs_acl_chmod(struct RedisModuleCtx *ctx, struct mfs_span ino, uint32_t mode);

#endif
