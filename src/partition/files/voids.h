/* Voids of a file: ranges below its end of data that hold no content, because they came to be below
 * it when a commit named bytes further on. Whatever stripes have there, left by a client that died
 * before it could name it, reads as zeros (decisions/0020). The key V ino has them, in the order of
 * the file, as pairs of little-endian numbers: begin, end; what is in it at or beyond the end of
 * data means nothing.
 *
 * What is allocated, which the record counts, goes by these: blocks below the end of data that are
 * not wholly void, and those that fallocate has asked for (key F ino, likewise, whole blocks). */
#ifndef MFS_PARTITION_FILES_VOIDS_H
#define MFS_PARTITION_FILES_VOIDS_H

#include <stdbool.h>

#include "base/ranges.h"
#include "partition/inode.h"

#define MFS_BLOCK 4096 /* bytes; what holes and allocated room are counted in */

/* Of one file; the smallest of more are forgotten. */
#define MFS_VOIDS_MAX 4096

/* What fallocate does to a file. */
struct mfs_room {
    char how; /* '+': the range is allocated, '-': it is no more; 0: nothing */
    int64_t lo, hi;
    int64_t void_lo, void_hi; /* void from now on, as far as it is below the end of data */
};

/* These bytes of the file, [lo, hi), are now named. Nothing when they are none. */
void mfs_voids_name(struct mfs_ranges *named, int64_t lo, int64_t hi);

/* The same of a list of pairs, as in the key, to none so far; false: it is none of a client's, as
 * it is in disorder or very long. */
bool mfs_voids_name_list(struct mfs_ranges *named, struct mfs_span list);

/* As a commit has it: empty, or `how` and the four numbers (8 bytes each). False: it is none. */
bool mfs_room_parse(struct mfs_span text, struct mfs_room *room);

/* What a file has up to now. */
struct mfs_space {
    struct mfs_ranges voids;
    struct mfs_ranges room; /* asked for by fallocate */
};

void mfs_space_init(struct mfs_space *s);
void mfs_space_fini(struct mfs_space *s);
/* Of a file whose record is sound; false: a key has something else. */
bool mfs_space_load(struct RedisModuleCtx *ctx, struct mfs_span ino, const struct mfs_inode *i,
                    struct mfs_space *s);

/* The end of data becomes at least `end` and what is named; all else that comes below it so is
 * void, and what is named no more is. *s is what the file had, and then has. */
void mfs_voids_grow(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_inode *i,
                    int64_t end, const struct mfs_ranges *named, const struct mfs_room *room,
                    struct mfs_space *s);

/* The end of data becomes at least `end`: what stripes may have below it, and no commit has told
 * of, is void, and goes with the file or with the next cut. Of a file whose record is sound. */
void mfs_voids_leave(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_inode *i,
                     int64_t end);

/* The file was cut to its present size and end of data. A damaged one stays as it is. */
void mfs_voids_cut(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_inode *i);

/* What of stripe 0, as it is stored, is content, of a sound record. False: not a beginning of it,
 * as there may be voids. The bytes are good until the key is written to or closed. */
bool mfs_voids_head(const struct mfs_inode *i, struct RedisModuleKey *stripe0,
                    struct mfs_span *content);

#endif
