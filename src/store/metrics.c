#include "store/metrics.h"

#include <stdio.h>
#include <string.h>

static const struct mfs_metric figures[MFS_STORE_METRICS] = {
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

int mfs_store_figures_init(struct mfs_store_figures *f, struct mfs_metrics *registry)
{
    *f = (struct mfs_store_figures){0};
    memcpy(f->table, figures, sizeof figures);
    for (unsigned i = 0; i <= MFS_STORE_FIGURES_NODES; i++)
        f->value[i] = f->name[i];
    snprintf(f->name[MFS_STORE_FIGURES_NODES], sizeof f->name[0], "others");
    for (unsigned i = MFS_STORE_SENT; i <= MFS_STORE_PARTITION_TIME; i++)
        f->table[i].label[0] =
            (struct mfs_metric_label){"to", f->value, MFS_STORE_FIGURES_NODES + 1};
    return mfs_metric_set_create(&f->set, registry, f->table, MFS_STORE_METRICS);
}

void mfs_store_figures_fini(struct mfs_store_figures *f)
{
    mfs_metric_set_destroy(f->set);
    f->set = NULL;
}

unsigned mfs_store_figures_node(struct mfs_store_figures *f, uint32_t node)
{
    char name[sizeof f->name[0]];
    uint32_t i = 0;

    while (i < f->n && f->node[i] != node)
        i++;
    if (i == f->n && f->n < MFS_STORE_FIGURES_NODES) {
        snprintf(name, sizeof name, "node-%u", node);
        mfs_metric_name_series(f->set, f->name[i], sizeof f->name[i], name);
        f->node[f->n++] = node;
    }
    return i;
}
