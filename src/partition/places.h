/* Of which files there may be a place that an append has taken (P ino): hardly ever any, so that
 * each look at a file is spared a look for that key. A filter of this process: it may say of a file
 * that has none that it has, never the other way round. */
#ifndef MFS_PARTITION_PLACES_H
#define MFS_PARTITION_PLACES_H

#include <stdbool.h>

#include "partition/span.h"

/* The key is written. */
void mfs_places_note(struct mfs_span ino);
bool mfs_places_maybe(struct mfs_span ino);

/* A key that was written otherwise than by a command of ours: notes it, if it is such a place. */
void mfs_places_note_key(struct mfs_span name);

/* Has the server tell of those; once. MFS_REDIS_OK or MFS_REDIS_ERR. */
int mfs_places_load(struct RedisModuleCtx *ctx);

#endif
