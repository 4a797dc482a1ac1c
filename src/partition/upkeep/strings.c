#include "partition/upkeep/strings.h"

void mfs_strings_each(struct RedisModuleCtx *ctx, struct RedisModuleCallReply *answer, size_t most,
                      mfs_string_fn *each, void *arg)
{
    size_t n = answer ? mfs_redis.CallReplyLength(answer) : 0;

    for (size_t i = 0; i < n; i++) {
        struct RedisModuleCallReply *one = mfs_redis.CallReplyArrayElement(answer, i);
        struct mfs_span s = {NULL, 0};

        if (one)
            s.p = mfs_redis.CallReplyStringPtr(one, &s.n);
        if (s.p && s.n <= most)
            each(ctx, s, arg);
    }
    if (answer)
        mfs_redis.FreeCallReply(answer);
}
