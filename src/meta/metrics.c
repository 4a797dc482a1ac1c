#include "meta/metrics.h"

/* "filling": the client has filled this part of the directory itself and knows that there is no
 * such name. */
static const char *const answers[] = {[MFS_META_BY_LEASE] = "lease",
                                      [MFS_META_BY_FILLING] = "filling",
                                      [MFS_META_BY_PARTITION] = "partition"};

const struct mfs_metric mfs_meta_metrics[MFS_META_METRICS] = {
    [MFS_META_LOOKUPS] = {.name = "memefs_lookups_total",
                          .help = "Look-ups of a name, by what answered them.",
                          .kind = MFS_METRIC_COUNTER,
                          .label = {{"answered_by", answers, 3}}}};
