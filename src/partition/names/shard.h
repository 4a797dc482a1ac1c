/* This partition's shard of a directory: a hash D ino, name → entry. Its field '' (no name is
 * empty) is a seal: while it is there no name can be added. It holds the transaction that is
 * removing the directory and the partition that decides it; a removed directory's shard is a
 * tombstone for a while, so that no client adds names by an old copy of its inode. */
#ifndef MFS_PARTITION_NAMES_SHARD_H
#define MFS_PARTITION_NAMES_SHARD_H

#include <stdbool.h>

#include "partition/answer.h"
#include "partition/layout.h"

/* Is it one, perhaps with the intent of a rename? */
bool mfs_entry_is(struct mfs_span entry);
struct mfs_span mfs_entry_ino(struct mfs_span entry);
unsigned mfs_entry_type(struct mfs_span entry); /* mode / 4096 */

/* What the shard has under a name. Both are to be freed by mfs_slot_fini; without, p is NULL. */
struct mfs_slot {
    struct RedisModuleString *held[2];
    struct mfs_span entry, seal;
};
struct mfs_slot mfs_slot_read(struct RedisModuleCtx *ctx, struct mfs_span dir,
                              struct RedisModuleString *name);
void mfs_slot_fini(struct mfs_slot *s);

void mfs_shard_set(struct RedisModuleCtx *ctx, struct mfs_span dir, struct RedisModuleString *name,
                   const void *entry, size_t n);
void mfs_shard_drop(struct RedisModuleCtx *ctx, struct mfs_span dir,
                    struct RedisModuleString *name);

/* The seal; NULL: none. To be freed. */
struct RedisModuleString *mfs_shard_seal(struct RedisModuleCtx *ctx, struct mfs_span dir);
void mfs_shard_set_seal(struct RedisModuleCtx *ctx, struct mfs_span dir, struct mfs_span seal);
void mfs_shard_drop_seal(struct RedisModuleCtx *ctx, struct mfs_span dir);
/* The directory is removed. */
void mfs_shard_set_tombstone(struct RedisModuleCtx *ctx, struct mfs_span dir);

/* Adds the shard's keeper, if it is another session: it has to be told of a name that was added. */
void mfs_shard_keeper(struct RedisModuleCtx *ctx, struct mfs_span dir, struct mfs_span sid,
                      struct mfs_answer *a);

#endif
