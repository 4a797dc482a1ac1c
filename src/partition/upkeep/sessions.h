/* The sessions that a partition knows. */
#ifndef MFS_PARTITION_UPKEEP_SESSIONS_H
#define MFS_PARTITION_UPKEEP_SESSIONS_H

#include <stdbool.h>

#include "partition/span.h"

/* Calls each(sid, arg) for all of #sessions. */
typedef void mfs_session_fn(struct RedisModuleCtx *ctx, struct mfs_span sid, void *arg);
void mfs_sessions_each(struct RedisModuleCtx *ctx, mfs_session_fn *each, void *arg);

bool mfs_session_is_dead(struct RedisModuleCtx *ctx, struct mfs_span sid);

#endif
