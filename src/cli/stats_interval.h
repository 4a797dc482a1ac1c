/* memefs stats --interval: a line each so many seconds. */
#ifndef MFS_CLI_STATS_INTERVAL_H
#define MFS_CLI_STATS_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Of the mount that the path is on, NULL: the only one here; `count` lines, 0: until it is ended.
 * Blocks. 0, or a negative errno with the sentence. */
int mfs_stats_interval(const char *path, double seconds, uint64_t count, bool json,
                       struct mfs_err *err);

#endif
