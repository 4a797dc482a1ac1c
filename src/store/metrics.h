/* What the store counts: the table behind mfs_store.metrics. */
#ifndef MFS_STORE_METRICS_H
#define MFS_STORE_METRICS_H

#include "base/metrics.h"

enum mfs_store_metric {
    MFS_STORE_ROUND_TRIPS, /* calls that waited for replies, each attempt */
    MFS_STORE_COMMANDS,
    MFS_STORE_SENT, /* bytes */
    MFS_STORE_RECEIVED,
    MFS_STORE_PARTITION_TIME, /* of one partition's part in an attempt */
    MFS_STORE_FENCE_TIME,     /* calls that waited for a partition that is being moved */
    MFS_STORE_METRICS
};

extern const struct mfs_metric mfs_store_metrics[MFS_STORE_METRICS];

#endif
