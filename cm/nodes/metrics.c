#include "cm/nodes/metrics.h"

const struct mfs_metric mfs_cm_metrics[MFS_CM_METRICS] = {
    [MFS_CM_MOVED_PARTITIONS] = {.name = "memefs_cm_moved_partitions_total",
                                 .help = "Partitions moved to another node.",
                                 .kind = MFS_METRIC_COUNTER},
    [MFS_CM_MOVED_BYTES] = {.name = "memefs_cm_moved_bytes_total",
                            .help = "Bytes copied for moves.",
                            .kind = MFS_METRIC_COUNTER},
    [MFS_CM_MOVE_COPY_TIME] = {.name = "memefs_cm_move_copy_seconds",
                               .help = "Time that copying a partition took.",
                               .kind = MFS_METRIC_HISTOGRAM},
    [MFS_CM_MOVE_BLOCKED_TIME] = {.name = "memefs_cm_move_blocked_seconds",
                                  .help = "Time that a partition did not serve for a move.",
                                  .kind = MFS_METRIC_HISTOGRAM},
    [MFS_CM_TABLE_TIME] = {.name = "memefs_cm_table_push_seconds",
                           .help = "Time until a moved partition's table was known everywhere.",
                           .kind = MFS_METRIC_HISTOGRAM},
};
