/* The locks of a file: a hash beside its inode (L ino), which is what is moved, copied and
 * replayed, and an index of it, made when it is needed and forgotten when others than these
 * functions have changed the hash.
 *
 *   owner (17 bytes), first byte (8, big-endian)  →  type (1), pid (4), last byte (8)
 *   owner                                         →  when one of its descriptors was closed (8, ms)
 *
 * The second field stands while locks of an open file may be about to go (docs/design/metadata.md).
 */
#ifndef MFS_PARTITION_LOCKS_LOCK_KEYS_H
#define MFS_PARTITION_LOCKS_LOCK_KEYS_H

#include <stdbool.h>

#include "partition/span.h"
#include "partition/locks/lock_index.h"

struct mfs_locks {
    struct RedisModuleCtx *ctx;
    struct mfs_span ino;
    struct RedisModuleKey *key; /* NULL: opened for reading, and there is none */
    struct mfs_lock_index *index;
};

/* To be closed, before another command runs. */
struct mfs_locks mfs_locks_open(struct RedisModuleCtx *ctx, struct mfs_span ino, int mode);
void mfs_locks_close(struct mfs_locks *l);

/* Opened for writing. put replaces a range with the same owner and first byte; take's range may be
 * one of the index. */
void mfs_locks_put(struct mfs_locks *l, const struct mfs_locked *range);
void mfs_locks_take(struct mfs_locks *l, const struct mfs_locked *range);
void mfs_locks_take_session(struct mfs_locks *l, struct mfs_span session);

void mfs_locks_mark(struct mfs_locks *l, const char *owner);
bool mfs_locks_unmark(struct mfs_locks *l, const char *owner);        /* was there a mark? */
bool mfs_locks_closing(const struct mfs_locks *l, const char *owner); /* is there a recent one? */

/* The hash has been changed, or is to be. */
void mfs_locks_forget(struct mfs_span ino);

/* Has the server tell of changes; once. MFS_REDIS_OK or MFS_REDIS_ERR. */
int mfs_locks_load(struct RedisModuleCtx *ctx);

#endif
