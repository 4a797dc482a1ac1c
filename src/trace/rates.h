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

/* Appends a line. 0 or -ENOMEM. */
int mfs_rates_head(struct mfs_buf *to);
int mfs_rates_text(const struct mfs_rates *r, struct mfs_buf *to);
int mfs_rates_json(const struct mfs_rates *r, double time, struct mfs_buf *to);

#endif
