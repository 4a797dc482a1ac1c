#include "meta/metrics.h"

#include "meta/internal.h"

/* "filling": the client has filled this part of the directory itself and knows that there is no
 * such name. */
static const char *const answers[] = {[MFS_META_BY_LEASE] = "lease",
                                      [MFS_META_BY_FILLING] = "filling",
                                      [MFS_META_BY_PARTITION] = "partition"};

static const char *const caches[MFS_CACHES] = {[MFS_CACHE_NAMES] = "names",
                                               [MFS_CACHE_ABSENT] = "absent",
                                               [MFS_CACHE_ATTRIBUTES] = "attributes",
                                               [MFS_CACHE_CONTENTS] = "contents",
                                               [MFS_CACHE_READ_AHEAD] = "read_ahead"};

void mfs_meta_cached(struct mfs_meta *meta, enum mfs_cache cache, bool hit)
{
    mfs_metric_add(meta->metrics, hit ? MFS_META_HITS : MFS_META_MISSES, cache, 1);
}

const struct mfs_metric mfs_meta_metrics[MFS_META_METRICS] = {
    [MFS_META_LOOKUPS] = {.name = "memefs_lookups_total",
                          .help = "Look-ups of a name, by what answered them.",
                          .kind = MFS_METRIC_COUNTER,
                          .label = {{"answered_by", answers, 3}}},
    [MFS_META_HITS] = {.name = "memefs_cache_hits_total",
                       .help = "Answers from what the client knows already.",
                       .kind = MFS_METRIC_COUNTER,
                       .label = {{"cache", caches, MFS_CACHES}}},
    [MFS_META_MISSES] = {.name = "memefs_cache_misses_total",
                         .help = "Of the same kind, for which partitions had to be asked.",
                         .kind = MFS_METRIC_COUNTER,
                         .label = {{"cache", caches, MFS_CACHES}}}};
