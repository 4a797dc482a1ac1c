#include "partition/journal/lost.h"

#include <stdio.h>
#include <stdlib.h>

#include "partition/keys.h"
#include "partition/protocol.h"

int64_t mfs_lost_bytes(struct RedisModuleCtx *ctx, struct RedisModuleKey *stripe)
{
    struct RedisModuleString *field, *value;
    int64_t bytes = 0;

    if (!stripe || mfs_redis.KeyType(stripe) != MFS_REDIS_HASH)
        return -1;
    field = mfs_redis.CreateString(ctx, MFS_LOST_FIELD, sizeof MFS_LOST_FIELD - 1);
    value = mfs_key_field(stripe, field);
    mfs_redis.FreeString(ctx, field);
    if (value) {
        bytes = strtoll(mfs_string_span(value).p, NULL, 10);
        mfs_redis.FreeString(ctx, value);
    }
    return bytes < 0 ? 0 : bytes;
}

void mfs_lost_put(struct RedisModuleCtx *ctx, struct RedisModuleKey *stripe, int64_t bytes)
{
    struct RedisModuleString *field =
        mfs_redis.CreateString(ctx, MFS_LOST_FIELD, sizeof MFS_LOST_FIELD - 1);
    char text[24];
    int n = snprintf(text, sizeof text, "%lld", (long long)bytes);

    mfs_redis.DeleteKey(stripe);
    mfs_key_set_field(ctx, stripe, field, text, (size_t)n);
    mfs_redis.FreeString(ctx, field);
    mfs_key_count(ctx, MFS_LOSSES_KEY);
}
