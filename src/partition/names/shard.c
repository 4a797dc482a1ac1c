#include "partition/names/shard.h"

#include "partition/keys.h"
#include "partition/protocol.h"

#define TOMBSTONE "X"

bool mfs_entry_is(struct mfs_span entry)
{
    return entry.n >= MFS_ENTRY_LEN && entry.n <= MFS_INTENT_LEN;
}

struct mfs_span mfs_entry_ino(struct mfs_span entry)
{
    return (struct mfs_span){entry.p, 8};
}

unsigned mfs_entry_type(struct mfs_span entry)
{
    return (unsigned char)entry.p[8];
}

static struct mfs_span span_of(struct RedisModuleString *held)
{
    return held ? mfs_string_span(held) : (struct mfs_span){NULL, 0};
}

struct mfs_slot mfs_slot_read(struct RedisModuleCtx *ctx, struct mfs_span dir,
                              struct RedisModuleString *name)
{
    struct RedisModuleKey *key = mfs_key_open(ctx, 'D', dir, MFS_REDIS_READ);
    struct RedisModuleString *sealed = mfs_redis.CreateString(ctx, "", 0);
    struct mfs_slot s = {.held = {mfs_key_field(key, name), mfs_key_field(key, sealed)}};

    mfs_redis.FreeString(ctx, sealed);
    mfs_key_close(key);
    s.entry = span_of(s.held[0]);
    s.seal = span_of(s.held[1]);
    return s;
}

void mfs_slot_fini(struct mfs_slot *s)
{
    for (size_t i = 0; i < 2; i++)
        if (s->held[i])
            mfs_redis.FreeString(NULL, s->held[i]);
}

void mfs_shard_set(struct RedisModuleCtx *ctx, struct mfs_span dir, struct RedisModuleString *name,
                   const void *entry, size_t n)
{
    struct RedisModuleKey *key = mfs_key_open(ctx, 'D', dir, MFS_REDIS_WRITE);

    mfs_key_set_field(ctx, key, name, entry, n);
    mfs_key_close(key);
}

void mfs_shard_drop(struct RedisModuleCtx *ctx, struct mfs_span dir, struct RedisModuleString *name)
{
    struct RedisModuleKey *key = mfs_key_open(ctx, 'D', dir, MFS_REDIS_WRITE);

    mfs_key_drop_field(key, name);
    mfs_key_close(key);
}

struct RedisModuleString *mfs_shard_seal(struct RedisModuleCtx *ctx, struct mfs_span dir)
{
    struct RedisModuleKey *key = mfs_key_open(ctx, 'D', dir, MFS_REDIS_READ);
    struct RedisModuleString *sealed = mfs_redis.CreateString(ctx, "", 0), *seal;

    seal = mfs_key_field(key, sealed);
    mfs_redis.FreeString(ctx, sealed);
    mfs_key_close(key);
    return seal;
}

void mfs_shard_set_seal(struct RedisModuleCtx *ctx, struct mfs_span dir, struct mfs_span seal)
{
    struct RedisModuleString *sealed = mfs_redis.CreateString(ctx, "", 0);

    mfs_shard_set(ctx, dir, sealed, seal.p, seal.n);
    mfs_redis.FreeString(ctx, sealed);
}

void mfs_shard_drop_seal(struct RedisModuleCtx *ctx, struct mfs_span dir)
{
    struct RedisModuleString *sealed = mfs_redis.CreateString(ctx, "", 0);

    mfs_shard_drop(ctx, dir, sealed);
    mfs_redis.FreeString(ctx, sealed);
}

void mfs_shard_set_tombstone(struct RedisModuleCtx *ctx, struct mfs_span dir)
{
    struct RedisModuleKey *key;

    mfs_shard_set_seal(ctx, dir, (struct mfs_span){TOMBSTONE, 1});
    key = mfs_key_open(ctx, 'D', dir, MFS_REDIS_WRITE);
    mfs_key_expire(key, MFS_TOMBSTONE_MS);
    mfs_key_close(key);
}

void mfs_shard_keeper(struct RedisModuleCtx *ctx, struct mfs_span dir, struct mfs_span sid,
                      struct mfs_answer *a)
{
    struct RedisModuleKey *key = mfs_key_open(ctx, 'K', dir, MFS_REDIS_READ);
    struct mfs_span keeper = mfs_key_text(key);

    if (keeper.p && !mfs_span_is(keeper, sid))
        mfs_answer_span(a, keeper);
    mfs_key_close(key);
}
