/* The numbers of this partition's inodes, counted in #seq and never given out twice. */
#ifndef MFS_PARTITION_NUMBERS_H
#define MFS_PARTITION_NUMBERS_H

#include <stdbool.h>

#include "partition/span.h"

/* The next one, of this home, and with what `kind` has it say of its data (base/ino.h); false: all
 * have been given out. */
bool mfs_numbers_next(struct RedisModuleCtx *ctx, unsigned home, uint64_t kind, char ino[8]);

/* From now on numbers are skipped when a replica is promoted: MFS_REDIS_OK or MFS_REDIS_ERR. */
int mfs_numbers_load(struct RedisModuleCtx *ctx);

#endif
