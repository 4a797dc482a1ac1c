/* The strings of what another command answers. */
#ifndef MFS_PARTITION_UPKEEP_STRINGS_H
#define MFS_PARTITION_UPKEEP_STRINGS_H

#include "partition/span.h"

/* Calls each(one, arg) for all strings of the answer (NULL: there is none), which is released;
 * those longer than `most` are left out. */
typedef void mfs_string_fn(struct RedisModuleCtx *ctx, struct mfs_span one, void *arg);
void mfs_strings_each(struct RedisModuleCtx *ctx, struct RedisModuleCallReply *answer, size_t most,
                      mfs_string_fn *each, void *arg);

#endif
