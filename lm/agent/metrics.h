/* What a Local Manager counts: the table behind mfs_agent.figures. */
#ifndef MFS_LM_AGENT_METRICS_H
#define MFS_LM_AGENT_METRICS_H

#include "base/metrics.h"

enum mfs_agent_metric {
    MFS_AGENT_PARTITIONS, /* gauge */
    MFS_AGENT_REPORTS,
    MFS_AGENT_TABLES,
    MFS_AGENT_DEATHS,
    MFS_AGENT_REVIVAL_TIME,
    MFS_AGENT_METRICS
};

extern const struct mfs_metric mfs_agent_metrics[MFS_AGENT_METRICS];

#endif
