/* What `memefs top` shows of a mount, from two readings of its files. Pure. */
#ifndef MFS_CLI_TOP_MODEL_H
#define MFS_CLI_TOP_MODEL_H

#include <stdint.h>

#include "base/buf.h"
#include "proto/messages.h"
#include "trace/nodes.h"
#include "trace/rates.h"

enum mfs_mount_top_order {
    MFS_MOUNT_TOP_BY_RATE,
    MFS_MOUNT_TOP_BY_TIME,
    MFS_MOUNT_TOP_BY_P99,
    MFS_MOUNT_TOP_BY_ERRORS,
    MFS_MOUNT_TOP_BY_NAME,
    MFS_MOUNT_TOP_ORDERS
};

extern const char *const mfs_mount_top_order_names[MFS_MOUNT_TOP_ORDERS];

/* A node, by round trips since the reading before. */
struct mfs_mount_top_node {
    uint32_t node, partitions;
    double rate, mean_ms; /* round trips each second; 0: there were none */
    uint32_t under_way;
    double silent_s;
};

/* A file, a directory or a process: `rate` is its share of samples, of all requests. */
struct mfs_mount_top_hot {
    char name[MFS_HOT_NAME];
    double share, rate, bytes_rate, mean_ms;
};

struct mfs_mount_top {
    char mount[MFS_PATH_MAX];
    double time, seconds; /* since 1970; between the readings */
    struct mfs_rates rates;
    double operations; /* each second */
    uint64_t under_way, waiting;
    uint32_t nops;
    struct mfs_rates_op *op;
    uint32_t nnodes;
    struct mfs_mount_top_node *node;
    bool samples; /* what is asked for most is known: only root and the mount's owner may */
    uint32_t nfiles, ndirs, nprograms;
    struct mfs_mount_top_hot *file, *dir, *program;
};

/* One reading: stats.json, nodes.json, hot.json. */
struct mfs_mount_reading {
    int64_t at; /* mono; 0: none */
    struct mfs_stats stats;
    struct mfs_trace_nodes nodes;
    bool samples;
    struct mfs_hot hot;
};

void mfs_mount_reading_clear(struct mfs_mount_reading *r);

/* `before` with at 0: there is none, rates are 0. 0 or -ENOMEM. */
int mfs_mount_top_make(struct mfs_mount_top *t, const char *mount,
                       const struct mfs_mount_reading *before, const struct mfs_mount_reading *r);
void mfs_mount_top_clear(struct mfs_mount_top *t);

/* Places in t->op. */
void mfs_mount_top_sort(const struct mfs_mount_top *t, enum mfs_mount_top_order order,
                        uint32_t *out);

/* Appends it as text, or as JSON. 0 or -ENOMEM. */
int mfs_mount_top_text(const struct mfs_mount_top *t, struct mfs_buf *to);
int mfs_mount_top_json(const struct mfs_mount_top *t, struct mfs_buf *to);

#endif
