/* What the Central Manager counts: the table behind mfs_cm.figures. */
#ifndef MFS_CM_NODES_METRICS_H
#define MFS_CM_NODES_METRICS_H

#include "base/metrics.h"

enum mfs_cm_metric {
    MFS_CM_MOVED_PARTITIONS,
    MFS_CM_MOVED_BYTES,
    MFS_CM_MOVE_COPY_TIME,
    MFS_CM_MOVE_BLOCKED_TIME,
    MFS_CM_TABLE_TIME,
    MFS_CM_FAILOVERS,
    MFS_CM_LOST_PARTITIONS,
    MFS_CM_LOST_BYTES,
    MFS_CM_DECISIONS, /* series: enum mfs_cm_decision */
    MFS_CM_PROVIDER_REQUESTS,
    MFS_CM_PROVIDER_FAILURES,
    MFS_CM_PROVIDER_TIME,
    MFS_CM_METRICS
};

enum mfs_cm_decision { MFS_CM_DECIDED_OUT, MFS_CM_DECIDED_IN };

extern const struct mfs_metric mfs_cm_metrics[MFS_CM_METRICS];

#endif
