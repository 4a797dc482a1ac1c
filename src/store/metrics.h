/* What the store counts: the table behind mfs_store.metrics. What goes to nodes is counted by node:
 * those that it has seen first by themselves, all others together. */
#ifndef MFS_STORE_METRICS_H
#define MFS_STORE_METRICS_H

#include <stdint.h>

#include "base/metrics.h"

enum mfs_store_metric {
    MFS_STORE_ROUND_TRIPS, /* calls that waited for replies, each attempt */
    MFS_STORE_COMMANDS,
    MFS_STORE_SENT, /* bytes; series of this and the next two: mfs_store_figures_node */
    MFS_STORE_RECEIVED,
    MFS_STORE_PARTITION_TIME, /* of one partition's part in an attempt */
    MFS_STORE_FENCE_TIME,     /* calls that waited for a partition that is being moved */
    MFS_STORE_METRICS
};

#define MFS_STORE_FIGURES_NODES 64U

struct mfs_store_figures {
    struct mfs_metric_set *set;
    uint32_t n, node[MFS_STORE_FIGURES_NODES]; /* those that have a series, in its order */
    char name[MFS_STORE_FIGURES_NODES + 1][20];
    const char *value[MFS_STORE_FIGURES_NODES + 1];
    struct mfs_metric table[MFS_STORE_METRICS];
};

/* *f stays where it is until _fini. registry NULL: none. 0 or -ENOMEM. */
int mfs_store_figures_init(struct mfs_store_figures *f, struct mfs_metrics *registry);
void mfs_store_figures_fini(struct mfs_store_figures *f);

/* The series of a node. One thread at a time. */
unsigned mfs_store_figures_node(struct mfs_store_figures *f, uint32_t node);

#endif
