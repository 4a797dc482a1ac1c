/* Inside the metrics: what counting and reading share. */
#ifndef MFS_BASE_METRICS_IMPL_H
#define MFS_BASE_METRICS_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/metrics.h"

typedef atomic_uint_fast64_t mfs_metric_cell;

/* Cells of a series of a histogram: the buckets, then the sum and the longest, ns. */
#define MFS_METRIC_CELL_SUM   MFS_METRIC_BUCKETS
#define MFS_METRIC_CELL_MAX   (MFS_METRIC_BUCKETS + 1)
#define MFS_METRIC_CELL_COUNT (MFS_METRIC_BUCKETS + 2)

struct mfs_metrics {
    pthread_mutex_t lock; /* guards the list; a leaf; held while sets are read */
    struct mfs_metric_set *first;
};

struct mfs_metric_set {
    struct mfs_metrics *registry; /* NULL: none */
    struct mfs_metric_set *next;  /* in the registry */
    const struct mfs_metric *table;
    unsigned n;
    size_t cells;          /* of one copy, whole cache lines */
    mfs_metric_cell *cell; /* all copies, one behind the other */
    struct mfs_metric_place {
        uint32_t first; /* cell, in a copy */
        uint32_t width; /* cells of a series */
        uint32_t series;
    } place[]; /* of each metric */
};

size_t mfs_metric_cells(const struct mfs_metric_set *set); /* all of them, of all copies */

/* The largest of the copies of a cell. */
uint64_t mfs_metric_most(const struct mfs_metric_set *set, size_t cell);

/* Adds up the copies of n cells from `first` on. */
void mfs_metric_totals(const struct mfs_metric_set *set, size_t first, size_t n, uint64_t *total);

#endif
