/* The sessions that a partition knows. */
#ifndef MFS_PARTITION_UPKEEP_SESSIONS_H
#define MFS_PARTITION_UPKEEP_SESSIONS_H

#include <stdbool.h>

#include "partition/upkeep/strings.h"

/* Calls each(sid, arg) for all of #sessions. */
void mfs_sessions_each(struct RedisModuleCtx *ctx, mfs_string_fn *each, void *arg);

bool mfs_session_is_dead(struct RedisModuleCtx *ctx, struct mfs_span sid);

#endif
