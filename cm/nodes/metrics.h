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
    MFS_CM_PROVIDER_CALLS, /* series: mfs_cm_provider_series */
    MFS_CM_METRICS
};

enum mfs_cm_decision { MFS_CM_DECIDED_OUT, MFS_CM_DECIDED_IN };

/* What a provider is asked for, and what came of it. */
enum mfs_cm_provider_call {
    MFS_CM_CALL_START, /* of a node's lm: until it has been started, queues included */
    MFS_CM_CALL_RELEASE,
    MFS_CM_CALL_ADOPT,
    MFS_CM_CALL_SIGNAL,
    MFS_CM_CALLS
};
enum mfs_cm_provider_result {
    MFS_CM_CALL_OK,
    MFS_CM_CALL_FAILED,
    MFS_CM_CALL_NOTHING, /* there was nothing to adopt, or to send a signal to */
    MFS_CM_CALL_RESULTS
};

static inline unsigned mfs_cm_provider_series(enum mfs_cm_provider_call call,
                                              enum mfs_cm_provider_result result)
{
    return (unsigned)call * MFS_CM_CALL_RESULTS + (unsigned)result;
}

extern const struct mfs_metric mfs_cm_metrics[MFS_CM_METRICS];

#endif
