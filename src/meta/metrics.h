/* What is counted of names: the table behind mfs_meta.metrics. */
#ifndef MFS_META_METRICS_H
#define MFS_META_METRICS_H

#include "base/metrics.h"

enum mfs_meta_metric { MFS_META_LOOKUPS, MFS_META_HITS, MFS_META_MISSES, MFS_META_METRICS };

/* By what a look-up is answered: a series each. */
enum mfs_meta_answer { MFS_META_BY_LEASE, MFS_META_BY_FILLING, MFS_META_BY_PARTITION };

extern const struct mfs_metric mfs_meta_metrics[MFS_META_METRICS];

#endif
