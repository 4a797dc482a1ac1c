/* Voids of a file: ranges below its end of data that hold no content, because they came to be below
 * it when a commit named bytes further on. Whatever stripes have there, left by a client that died
 * before it could name it, reads as zeros (decisions/0020). The key V ino has them, in the order of
 * the file, as pairs of little-endian numbers: begin, end; what is in it at or beyond the end of
 * data means nothing. */
#ifndef MFS_PARTITION_VOIDS_H
#define MFS_PARTITION_VOIDS_H

#include <stdbool.h>

#include "base/ranges.h"
#include "partition/inode.h"

#define MFS_FLAG_VOIDS 0x80 /* of an inode's record: it has voids (meta/attr.h) */

/* Of one file; the smallest of more are forgotten. */
#define MFS_VOIDS_MAX 4096

/* These bytes of the file, [lo, hi), are now named. Nothing when they are none. */
void mfs_voids_name(struct mfs_ranges *named, int64_t lo, int64_t hi);

/* The same of a list of pairs, as in the key, to none so far; false: it is none of a client's, as
 * it is in disorder or very long. */
bool mfs_voids_name_list(struct mfs_ranges *named, struct mfs_span list);

/* Adds the voids that the file, whose record is sound, has up to now, to none so far; false: the
 * key has something else. */
bool mfs_voids_load(struct RedisModuleCtx *ctx, struct mfs_span ino, const struct mfs_inode *i,
                    struct mfs_ranges *voids);

/* The end of data becomes at least `end` and what is named; all else that comes below it so is
 * void, and what is named no more is. `voids` are those that the file had, and then has. */
void mfs_voids_grow(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_inode *i,
                    int64_t end, const struct mfs_ranges *named, struct mfs_ranges *voids);

/* What of stripe 0, as it is stored, is content, of a sound record. False: not a beginning of it,
 * as there may be voids. The bytes are good until the key is written to or closed. */
bool mfs_voids_head(const struct mfs_inode *i, struct RedisModuleKey *stripe0,
                    struct mfs_span *content);

#endif
