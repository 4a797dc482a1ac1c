/* Who shows something without asking: holders of leases of an inode, keepers of a directory's shard
 * (docs/design/metadata.md). */
#ifndef MFS_PARTITION_FILES_LEASES_H
#define MFS_PARTITION_FILES_LEASES_H

#include <stdbool.h>

#include "partition/answer.h"

/* Registers the session (8 bytes); false when there is none, or too many are. */
bool mfs_lease_add(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_span sid);

/* The session has none any more. */
void mfs_lease_drop(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_span sid);

/* Adds the other sessions that have a lease of the inode, and, if wanted, those that have it open.
 */
void mfs_lease_others(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_span sid,
                      bool openers, struct mfs_answer *a);

/* After a name was added, by a session that says what it is: 'n' not the keeper, 'k' that, 'p' that
 * and wants to be for longer, 0 nothing. Adds '\1': it is the keeper now, of this one name; '\2':
 * it still is, for longer; '\0': neither. Behind it another keeper, which has to be told. `shard`
 * is the open key of the directory's names. */
void mfs_lease_keeper(struct RedisModuleCtx *ctx, struct RedisModuleKey *shard, struct mfs_span dir,
                      struct mfs_span sid, char what, struct mfs_answer *a);

/* The session is the keeper of the directory's shard no more. */
void mfs_lease_drop_keeper(struct RedisModuleCtx *ctx, struct mfs_span dir, struct mfs_span sid);

#endif
