/* Keys of a partition: a letter and an inode (docs/design/metadata.md has what each holds). */
#ifndef MFS_PARTITION_KEYS_H
#define MFS_PARTITION_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "partition/redis.h"
#include "partition/span.h"

struct mfs_marks;

/* To be closed; when it is opened for reading only, NULL: it is not there. `id` has at most
 * MFS_KEY_ID_MAX bytes. */
#define MFS_KEY_ID_MAX 16
struct RedisModuleKey *mfs_key_open(struct RedisModuleCtx *ctx, char letter, struct mfs_span id,
                                    int mode);
struct RedisModuleKey *mfs_key_named(struct RedisModuleCtx *ctx, const char *name, int mode);
struct RedisModuleKey *mfs_key_stripe0(struct RedisModuleCtx *ctx, struct mfs_span ino, int mode);
void mfs_key_close(struct RedisModuleKey *key); /* takes NULL */
void mfs_key_delete(struct RedisModuleKey *key);

struct mfs_span mfs_key_text(struct RedisModuleKey *key); /* of a string; takes NULL */
void mfs_key_set(struct RedisModuleCtx *ctx, struct RedisModuleKey *key, const void *p, size_t n);
void mfs_key_expire(struct RedisModuleKey *key, int64_t ms); /* it goes after so long */
/* Of a number as text: one more; what it is then. */
uint64_t mfs_key_count(struct RedisModuleCtx *ctx, const char *name);
/* Is there a key of this letter? */
bool mfs_key_exists(struct RedisModuleCtx *ctx, char letter, struct mfs_span id);
/* Deletes the key of this letter, if it is there. */
void mfs_key_drop(struct RedisModuleCtx *ctx, char letter, struct mfs_span id);

/* The key, or one field of its hash, has been or is about to be changed by this command, otherwise
 * than by the functions here. */
void mfs_key_changed(struct RedisModuleKey *key); /* takes NULL */
void mfs_key_field_changed(struct RedisModuleKey *key, const struct RedisModuleString *field);
/* From now on what is changed is marked there: the journal's (journal/journal.h). */
void mfs_key_mark_changes(struct mfs_marks *marks);

/* A field of a hash; NULL: not there. To be freed. */
struct RedisModuleString *mfs_key_field(struct RedisModuleKey *key,
                                        struct RedisModuleString *field);
void mfs_key_set_field(struct RedisModuleCtx *ctx, struct RedisModuleKey *key,
                       struct RedisModuleString *field, const void *p, size_t n);
void mfs_key_drop_field(struct RedisModuleKey *key, struct RedisModuleString *field);

#endif
