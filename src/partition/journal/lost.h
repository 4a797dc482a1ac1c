/* Stripes whose bytes were lost with the process that had them: such a key is a hash instead of a
 * string, so that no command that reads or changes bytes takes it for one. Its only field says how
 * many bytes there were. */
#ifndef MFS_PARTITION_JOURNAL_LOST_H
#define MFS_PARTITION_JOURNAL_LOST_H

#include <stdbool.h>
#include <stdint.h>

#include "partition/span.h"

#define MFS_LOST_FIELD "lost"

/* Of the open key of a stripe: how many bytes it had, -1: it is not lost. Takes NULL. */
int64_t mfs_lost_bytes(struct RedisModuleCtx *ctx, struct RedisModuleKey *stripe);

/* Has the key be a stripe that is lost, and counts that (MFS_LOSSES_KEY). */
void mfs_lost_put(struct RedisModuleCtx *ctx, struct RedisModuleKey *stripe, int64_t bytes);

#endif
