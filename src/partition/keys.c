/* Opening keys by letter and id, changing them, and building answers. Every change of a key or
 * field goes through here, or tells the journal itself: what the journal is not told of is lost
 * with the process. Answers grow in memory of the caller's; out of memory ends the process, as the
 * server does. */
#include "partition/keys.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partition/journal/marks.h"

static struct mfs_marks *marks; /* of changes; NULL: there is no journal */

static struct RedisModuleKey *open_key(struct RedisModuleCtx *ctx, const char *name, size_t n,
                                       int mode)
{
    struct RedisModuleString *s = mfs_redis.CreateString(ctx, name, n);
    struct RedisModuleKey *key = mfs_redis.OpenKey(ctx, s, mode);

    mfs_redis.FreeString(ctx, s);
    return key;
}

struct RedisModuleKey *mfs_key_open(struct RedisModuleCtx *ctx, char letter, struct mfs_span id,
                                    int mode)
{
    char name[1 + MFS_KEY_ID_MAX] = {letter};

    assert(id.n <= MFS_KEY_ID_MAX);
    memcpy(name + 1, id.p, id.n);
    return open_key(ctx, name, 1 + id.n, mode);
}

struct RedisModuleKey *mfs_key_named(struct RedisModuleCtx *ctx, const char *name, int mode)
{
    return open_key(ctx, name, strlen(name), mode);
}

struct RedisModuleKey *mfs_key_stripe0(struct RedisModuleCtx *ctx, struct mfs_span ino, int mode)
{
    char id[12] = {0};

    assert(ino.n == 8);
    memcpy(id, ino.p, ino.n);
    return mfs_key_open(ctx, 'S', (struct mfs_span){id, sizeof id}, mode);
}

void mfs_key_mark_changes(struct mfs_marks *m)
{
    marks = m;
}

void mfs_key_changed(struct RedisModuleKey *key)
{
    if (marks && key)
        mfs_marks_add(marks, mfs_string_span(mfs_redis.GetKeyNameFromModuleKey(key)),
                      (struct mfs_span){NULL, 0});
}

void mfs_key_field_changed(struct RedisModuleKey *key, const struct RedisModuleString *field)
{
    if (marks && key)
        mfs_marks_add(marks, mfs_string_span(mfs_redis.GetKeyNameFromModuleKey(key)),
                      mfs_string_span(field));
}

void mfs_key_delete(struct RedisModuleKey *key)
{
    if (mfs_redis.KeyType(key))
        mfs_key_changed(key);
    mfs_redis.DeleteKey(key);
}

void mfs_key_close(struct RedisModuleKey *key)
{
    if (key)
        mfs_redis.CloseKey(key);
}

struct mfs_span mfs_key_text(struct RedisModuleKey *key)
{
    struct mfs_span text = {NULL, 0};

    if (key && mfs_redis.ValueLength(key))
        text.p = mfs_redis.StringDMA(key, &text.n, MFS_REDIS_READ);
    return text;
}

void mfs_key_set(struct RedisModuleCtx *ctx, struct RedisModuleKey *key, const void *p, size_t n)
{
    struct RedisModuleString *s = mfs_redis.CreateString(ctx, p, n);

    mfs_redis.StringSet(key, s);
    mfs_redis.FreeString(ctx, s);
    mfs_key_changed(key);
}

void mfs_key_expire(struct RedisModuleKey *key, int64_t ms)
{
    mfs_redis.SetExpire(key, ms);
    mfs_key_changed(key);
}

uint64_t mfs_key_count(struct RedisModuleCtx *ctx, const char *name)
{
    struct RedisModuleKey *key = mfs_key_named(ctx, name, MFS_REDIS_WRITE);
    struct mfs_span last = mfs_key_text(key);
    uint64_t count = 1 + (last.p ? strtoull(last.p, NULL, 10) : 0);
    char text[24];
    int n = snprintf(text, sizeof text, "%llu", (unsigned long long)count);

    mfs_key_set(ctx, key, text, (size_t)n);
    mfs_key_close(key);
    return count;
}

bool mfs_key_exists(struct RedisModuleCtx *ctx, char letter, struct mfs_span id)
{
    struct RedisModuleKey *key = mfs_key_open(ctx, letter, id, MFS_REDIS_READ);

    mfs_key_close(key);
    return key != NULL;
}

void mfs_key_drop(struct RedisModuleCtx *ctx, char letter, struct mfs_span id)
{
    struct RedisModuleKey *key = mfs_key_open(ctx, letter, id, MFS_REDIS_WRITE);

    mfs_key_delete(key);
    mfs_key_close(key);
}

struct RedisModuleString *mfs_key_field(struct RedisModuleKey *key, struct RedisModuleString *field)
{
    struct RedisModuleString *value = NULL;

    if (key)
        mfs_redis.HashGet(key, 0, field, &value, NULL);
    return value;
}

void mfs_key_set_field(struct RedisModuleCtx *ctx, struct RedisModuleKey *key,
                       struct RedisModuleString *field, const void *p, size_t n)
{
    struct RedisModuleString *s = mfs_redis.CreateString(ctx, p, n);

    mfs_redis.HashSet(key, 0, field, s, NULL);
    mfs_redis.FreeString(ctx, s);
    mfs_key_field_changed(key, field);
}

void mfs_key_drop_field(struct RedisModuleKey *key, struct RedisModuleString *field)
{
    mfs_redis.HashSet(key, 0, field, MFS_REDIS_DELETE, NULL);
    mfs_key_field_changed(key, field);
}
