#include "partition/journal/api.h"

struct mfs_journal_api mfs_journal_api;

#define WANT(f) MFS_REDIS_WANT(struct mfs_journal_api, f)
static const struct mfs_redis_want wanted[] = {
    WANT(SubscribeToKeyspaceEvents),
    WANT(CommandFilterArgsCount),
    WANT(Scan),
    WANT(GetAbsExpire),
    WANT(SetAbsExpire),
    WANT(Log),
};

int mfs_journal_api_bind(struct RedisModuleCtx *ctx)
{
    return mfs_redis_take(ctx, &mfs_journal_api, wanted, sizeof wanted / sizeof *wanted);
}
