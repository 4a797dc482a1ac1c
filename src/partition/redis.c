#include "partition/redis.h"

#include <string.h>

struct mfs_redis_api mfs_redis;

#define WANT(f) MFS_REDIS_WANT(struct mfs_redis_api, f)
static const struct mfs_redis_want wanted[] = {
    WANT(SetModuleAttribs),
    WANT(CreateCommand),
    WANT(CreateString),
    WANT(FreeString),
    WANT(Alloc),
    WANT(Free),
    WANT(StringPtrLen),
    WANT(OpenKey),
    WANT(CloseKey),
    WANT(ValueLength),
    WANT(DeleteKey),
    WANT(KeyType),
    WANT(GetKeyNameFromModuleKey),
    WANT(GetExpire),
    WANT(SetExpire),
    WANT(StringDMA),
    WANT(StringSet),
    WANT(StringTruncate),
    WANT(HashGet),
    WANT(HashSet),
    WANT(ScanCursorCreate),
    WANT(ScanCursorDestroy),
    WANT(ScanKey),
    WANT(Call),
    WANT(CallReplyArrayElement),
    WANT(CallReplyLength),
    WANT(CallReplyStringPtr),
    WANT(CallReplyType),
    WANT(CallReplyInteger),
    WANT(FreeCallReply),
    WANT(ReplyWithStringBuffer),
    WANT(ReplyWithNull),
    WANT(ReplyWithError),
    WANT(ReplyWithLongLong),
    WANT(ReplyWithCallReply),
    WANT(ReplyWithArray),
    WANT(ReplySetArrayLength),
    WANT(Replicate),
    WANT(ReplicateVerbatim),
    WANT(SubscribeToServerEvent),
    WANT(RegisterCommandFilter),
    WANT(CommandFilterArgGet),
    WANT(CommandFilterArgReplace),
    WANT(GetContextFlags),
    WANT(GetClientId),
    WANT(GetClientInfoById),
    WANT(DeauthenticateAndCloseClient),
};

int mfs_redis_take(struct RedisModuleCtx *ctx, void *table, const struct mfs_redis_want *want,
                   size_t n)
{
    int (*get)(const char *name, void *function);

    memcpy(&get, ctx, sizeof get); /* the first thing in a context, by the API's definition */
    for (size_t i = 0; i < n; i++) {
        if (get(want[i].name, (char *)table + want[i].at) != MFS_REDIS_OK)
            return MFS_REDIS_ERR;
    }
    return MFS_REDIS_OK;
}

int mfs_redis_bind(struct RedisModuleCtx *ctx)
{
    return mfs_redis_take(ctx, &mfs_redis, wanted, sizeof wanted / sizeof *wanted);
}
