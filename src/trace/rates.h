/* What a mount has done between two readings of its figures (base/metrics.h), as vmstat(8) tells of
 * a machine. Pure. */
#ifndef MFS_TRACE_RATES_H
#define MFS_TRACE_RATES_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/metrics.h"

/* Each second, but for times and shares. */
struct mfs_rates {
    double meta, read, write; /* operations: those that are not reads and writes, … */
    double read_bytes, write_bytes;
    double p50_ms, p99_ms; /* of all operations */
    double errors;         /* without look-ups of what is not there */
    double hits;           /* %, of look-ups that asked no partition; -1: there were none */
    double window_waits;
};

/* `seconds` lie between them, more than 0. */
void mfs_rates_between(const struct mfs_metric_snapshot *before,
                       const struct mfs_metric_snapshot *after, double seconds,
                       struct mfs_rates *rates);

/* The same of a kind of operation. */
struct mfs_rates_op {
    char name[24];
    double rate, errors;       /* each second; errors: without look-ups of what is not there */
    double p50_ms, p99_ms;     /* of those that have come since */
    double busy;               /* s of each second that requests of it took, together */
    double all_p50_ms, max_ms; /* of all so far */
    uint64_t all, all_errors;
};

/* Those that there were so far, in the order of `after`. *list is to be freed. 0 or -ENOMEM. */
int mfs_rates_operations(const struct mfs_metric_snapshot *before,
                         const struct mfs_metric_snapshot *after, double seconds,
                         struct mfs_rates_op **list, uint32_t *n);

/* Appends a line. 0 or -ENOMEM. */
int mfs_rates_head(struct mfs_buf *to);
int mfs_rates_text(const struct mfs_rates *r, struct mfs_buf *to);
int mfs_rates_json(const struct mfs_rates *r, double time, struct mfs_buf *to);

#endif
