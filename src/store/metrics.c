#include "store/metrics.h"

const struct mfs_metric mfs_store_metrics[MFS_STORE_METRICS] = {
    [MFS_STORE_ROUND_TRIPS] = {.name = "memefs_round_trips_total",
                               .help = "Calls that waited for replies of partitions.",
                               .kind = MFS_METRIC_COUNTER},
    [MFS_STORE_COMMANDS] = {.name = "memefs_commands_total",
                            .help = "Commands sent to partitions.",
                            .kind = MFS_METRIC_COUNTER},
    [MFS_STORE_SENT] = {.name = "memefs_sent_bytes_total",
                        .help = "Bytes sent to partitions.",
                        .kind = MFS_METRIC_COUNTER},
    [MFS_STORE_RECEIVED] = {.name = "memefs_received_bytes_total",
                            .help = "Bytes received from partitions.",
                            .kind = MFS_METRIC_COUNTER},
    [MFS_STORE_PARTITION_TIME] = {.name = "memefs_partition_round_trip_seconds",
                                  .help = "Time that one partition took to answer a call.",
                                  .kind = MFS_METRIC_HISTOGRAM},
    [MFS_STORE_FENCE_TIME] = {.name = "memefs_move_wait_seconds",
                              .help = "Time that calls waited for a partition that was moved.",
                              .kind = MFS_METRIC_HISTOGRAM},
};
