#include "partition/journal_api.h"

#include <string.h>

struct mfs_journal_api mfs_journal_api;

static const struct {
    const char *name;
    size_t at;
} wanted[] = {
#define WANT(f)                                                                                    \
    {                                                                                              \
        "RedisModule_" #f, offsetof(struct mfs_journal_api, f)                                     \
    }
    WANT(SubscribeToServerEvent),
    WANT(SubscribeToKeyspaceEvents),
    WANT(RegisterCommandFilter),
    WANT(CommandFilterArgsCount),
    WANT(CommandFilterArgGet),
    WANT(GetKeyNameFromModuleKey),
    WANT(Scan),
    WANT(GetAbsExpire),
    WANT(SetAbsExpire),
    WANT(CallReplyInteger),
    WANT(Log),
};

int mfs_journal_api_bind(struct RedisModuleCtx *ctx)
{
    int (*get)(const char *name, void *function);

    memcpy(&get, ctx, sizeof get); /* as in redis.c */
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (get(wanted[i].name, (char *)&mfs_journal_api + wanted[i].at) != MFS_REDIS_OK)
            return MFS_REDIS_ERR;
    }
    return MFS_REDIS_OK;
}
