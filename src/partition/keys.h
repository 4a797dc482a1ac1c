/* Keys of a partition: a letter and an inode (docs/design/metadata.md has what each holds); and a
 * command's arguments and answer. */
#ifndef MFS_PARTITION_KEYS_H
#define MFS_PARTITION_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "partition/redis.h"

struct mfs_span {
    const char *p; /* NULL: there is none */
    size_t n;
};

/* Are both there, with the same bytes? */
bool mfs_span_is(struct mfs_span a, struct mfs_span b);

/* A command under way. */
struct mfs_request {
    struct RedisModuleCtx *ctx;
    struct RedisModuleString **argv;
    int argc;
};

struct mfs_span mfs_request_arg(const struct mfs_request *r, int i); /* empty: not given */
int64_t mfs_request_int(const struct mfs_request *r, int i);
/* Has the argument just so many bytes? */
bool mfs_request_has(const struct mfs_request *r, int i, size_t n);

/* Answers with errno (store/reply.h). */
int mfs_request_fail(const struct mfs_request *r, int number, const char *text);

struct mfs_span mfs_string_span(const struct RedisModuleString *s);

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

/* A field of a hash; NULL: not there. To be freed. */
struct RedisModuleString *mfs_key_field(struct RedisModuleKey *key,
                                        struct RedisModuleString *field);
void mfs_key_set_field(struct RedisModuleCtx *ctx, struct RedisModuleKey *key,
                       struct RedisModuleString *field, const void *p, size_t n);
void mfs_key_drop_field(struct RedisModuleKey *key, struct RedisModuleString *field);

/* What a command answers, put together piece by piece. */
struct mfs_answer {
    char *p; /* heap */
    size_t n, room;
};
void mfs_answer_add(struct mfs_answer *a, const void *p, size_t n);
void mfs_answer_byte(struct mfs_answer *a, size_t byte);
void mfs_answer_span(struct mfs_answer *a, struct mfs_span s);
void mfs_answer_fini(struct mfs_answer *a);
/* Sends it as one string, and frees it. */
int mfs_answer_send(struct mfs_answer *a, struct RedisModuleCtx *ctx);

#endif
