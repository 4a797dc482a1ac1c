/* A replica that is promoted may lack the last creations, which were not acknowledged. Another
 * client may have seen their numbers all the same, and a kernel keeps the text of a symbolic link
 * by its number. So a process that stops following another one leaves out more numbers than can
 * have been on their way; 2^42 of them let it do so 2^22 times. */
#include "partition/numbers.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/ino.h"
#include "partition/keys.h"

#define SKIPPED (1U << 20)

static uint64_t count_in(struct RedisModuleKey *key)
{
    struct mfs_span text = mfs_key_text(key);

    return text.p ? strtoull(text.p, NULL, 10) : 0;
}

static void set_count(struct RedisModuleCtx *ctx, struct RedisModuleKey *key, uint64_t count,
                      char text[24])
{
    int n = snprintf(text, 24, "%llu", (unsigned long long)count);

    mfs_key_set(ctx, key, text, (size_t)n);
}

bool mfs_numbers_next(struct RedisModuleCtx *ctx, unsigned home, uint64_t kind, char ino[8])
{
    struct RedisModuleKey *key = mfs_key_named(ctx, "#seq", MFS_REDIS_WRITE);
    uint64_t last = count_in(key);
    bool some = last < MFS_INO_SEQ_MAX;
    char text[24];

    if (some) {
        set_count(ctx, key, ++last, text);
        mfs_put_be64(ino, mfs_ino_make(home, last) | kind);
    }
    mfs_key_close(key);
    return some;
}

static void skip(struct RedisModuleCtx *ctx, const char *name, uint64_t by)
{
    struct RedisModuleKey *key = mfs_key_named(ctx, name, MFS_REDIS_WRITE);
    char text[24];

    set_count(ctx, key, count_in(key) + by, text);
    mfs_redis.Replicate(ctx, "SET", "cc", name, text);
    mfs_key_close(key);
}

static void on_role(struct RedisModuleCtx *ctx, struct mfs_redis_event event, uint64_t sub,
                    void *data)
{
    struct RedisModuleKey *key;
    uint64_t last, left;

    (void)event;
    (void)data;
    if (sub != MFS_ROLE_MASTER)
        return;
    key = mfs_key_named(ctx, "#seq", MFS_REDIS_READ);
    last = count_in(key);
    mfs_key_close(key);
    left = last < MFS_INO_SEQ_MAX ? MFS_INO_SEQ_MAX - last : 0;
    if (!left)
        return;
    skip(ctx, "#seq", left < SKIPPED ? left : SKIPPED);
    skip(ctx, "#freed", left < SKIPPED ? left : SKIPPED); /* no inode has these numbers */
}

int mfs_numbers_load(struct RedisModuleCtx *ctx)
{
    return mfs_redis.SubscribeToServerEvent(ctx, (struct mfs_redis_event){MFS_EVENT_ROLE, 1},
                                            on_role);
}
