#include "partition/redis.h"

#include <string.h>

struct mfs_redis_api mfs_redis;

static const struct {
    const char *name;
    size_t at;
} wanted[] = {
#define WANT(f)                                                                                    \
    {                                                                                              \
        "RedisModule_" #f, offsetof(struct mfs_redis_api, f)                                       \
    }
    WANT(SetModuleAttribs),
    WANT(CreateCommand),
    WANT(CreateString),
    WANT(FreeString),
    WANT(StringPtrLen),
    WANT(OpenKey),
    WANT(CloseKey),
    WANT(ValueLength),
    WANT(DeleteKey),
    WANT(KeyType),
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
    WANT(FreeCallReply),
    WANT(ReplyWithStringBuffer),
    WANT(ReplyWithNull),
    WANT(ReplyWithError),
    WANT(ReplyWithLongLong),
    WANT(ReplyWithArray),
    WANT(ReplySetArrayLength),
    WANT(ReplicateVerbatim),
    WANT(RegisterCommandFilter),
    WANT(CommandFilterArgGet),
    WANT(CommandFilterArgReplace),
};

int mfs_redis_bind(struct RedisModuleCtx *ctx)
{
    int (*get)(const char *name, void *function);

    memcpy(&get, ctx, sizeof get); /* the first thing in a context, by the API's definition */
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (get(wanted[i].name, (char *)&mfs_redis + wanted[i].at) != MFS_REDIS_OK)
            return MFS_REDIS_ERR;
    }
    return MFS_REDIS_OK;
}
