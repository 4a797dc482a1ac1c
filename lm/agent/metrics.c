#include "lm/agent/metrics.h"

const struct mfs_metric mfs_agent_metrics[MFS_AGENT_METRICS] = {
    [MFS_AGENT_PARTITIONS] = {.name = "memefs_lm_partitions",
                              .help = "Partitions that the node is to run.",
                              .kind = MFS_METRIC_GAUGE},
    [MFS_AGENT_REPORTS] = {.name = "memefs_lm_reports_total",
                           .help = "Reports sent to cm.",
                           .kind = MFS_METRIC_COUNTER},
    [MFS_AGENT_TABLES] = {.name = "memefs_lm_tables_total",
                          .help = "Partition tables taken.",
                          .kind = MFS_METRIC_COUNTER},
    [MFS_AGENT_DEATHS] = {.name = "memefs_lm_partition_deaths_total",
                          .help = "Ends of a partition's process that nobody asked for.",
                          .kind = MFS_METRIC_COUNTER},
    [MFS_AGENT_REVIVAL_TIME] = {.name = "memefs_lm_revival_seconds",
                                .help = "Time until another process had the names of a dead one.",
                                .kind = MFS_METRIC_HISTOGRAM},
};
