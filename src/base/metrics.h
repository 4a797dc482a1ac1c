/* Figures of a running program: counters, gauges and histograms of durations, each named once.
 *
 * A module has a static table of its metrics and makes one set of values from it; a registry knows
 * the sets of a program (or of one client of several in a process) and reads them all. Names and
 * units are Prometheus': "memefs_…_total" for counters, "…_seconds" for histograms, bytes in
 * "…_bytes". A metric has at most two labels, whose values stand in the table, too: each
 * combination is a series, numbered as first · (values of the second) + second.
 *
 * Counting takes no lock and no memory: a relaxed addition to a cell that the calling thread shares
 * with few others. Reading adds up the cells of all threads, beside those that count: each figure
 * is true of some moment during the call, and only grows unless it is a gauge.
 *
 * Any thread may call any of these functions; a set is destroyed when none counts in it any more.
 */
#ifndef MFS_BASE_METRICS_H
#define MFS_BASE_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MFS_METRIC_NAME_MAX    64
#define MFS_METRIC_LABELS_MAX  80
#define MFS_METRIC_HELP_MAX    96
#define MFS_METRIC_SAMPLES_MAX 1024U /* of a snapshot; what a registry has beyond is left out */

/* Bucket i of a histogram has what took at most 2^i µs and more than the one before; the last one
 * what took longer than 2^25 µs, 34 s. */
#define MFS_METRIC_BUCKETS 27U

enum mfs_metric_kind { MFS_METRIC_COUNTER, MFS_METRIC_GAUGE, MFS_METRIC_HISTOGRAM };

struct mfs_metric_label {
    const char *name; /* NULL: the metric has no such label */
    const char *const *values;
    unsigned n; /* of them */
};

struct mfs_metric {
    const char *name, *help; /* help: one line, without quotes; NULL: none */
    enum mfs_metric_kind kind;
    struct mfs_metric_label label[2]; /* the first one, then the second */
};

struct mfs_metrics;    /* the registry */
struct mfs_metric_set; /* a module's values */

/* NULL: no memory. Its sets are destroyed before it. */
struct mfs_metrics *mfs_metrics_create(void);
void mfs_metrics_destroy(struct mfs_metrics *m); /* takes NULL */

/* A set of the table's n metrics, all zero, which must outlive it; in the registry until it is
 * destroyed. registry NULL: in none, only the module itself reads it. 0,
 * -ENOMEM, or -EINVAL: a name is not as it should be. */
int mfs_metric_set_create(struct mfs_metric_set **set, struct mfs_metrics *registry,
                          const struct mfs_metric *table, unsigned n);
void mfs_metric_set_destroy(struct mfs_metric_set *set); /* takes NULL */

/* Writes a label's value to where the table has it, in out[n], cut: while nobody reads. Nothing has
 * been counted in its series yet. */
void mfs_metric_name_series(struct mfs_metric_set *set, char *out, size_t n, const char *value);

/* Adds to a series of a counter; `metric` is its place in the table. Of this and the next two: to
 * set NULL they do nothing. */
void mfs_metric_add(struct mfs_metric_set *set, unsigned metric, unsigned series, uint64_t n);
/* … of a gauge, up or down. */
void mfs_metric_change(struct mfs_metric_set *set, unsigned metric, unsigned series, int64_t by);
/* Notes a duration of ns in a series of a histogram; negative ones count as none. */
void mfs_metric_observe(struct mfs_metric_set *set, unsigned metric, unsigned series, int64_t ns);

/* A counter or gauge; of a histogram how many durations it has. */
uint64_t mfs_metric_value(const struct mfs_metric_set *set, unsigned metric, unsigned series);

/* The same over all series of the metric. */
uint64_t mfs_metric_sum(const struct mfs_metric_set *set, unsigned metric);

/* --- reading a registry ----------------------------------------------------------------------- */

struct mfs_metric_bucket {
    uint32_t index;
    uint64_t count; /* of this bucket alone */
};

/* A series as it was. */
struct mfs_metric_sample {
    char name[MFS_METRIC_NAME_MAX];
    char labels[MFS_METRIC_LABELS_MAX]; /* operation="open",errno="EIO"; "" for none */
    char help[MFS_METRIC_HELP_MAX];     /* in the first sample of a metric; "" in the others */
    uint32_t kind;                      /* enum mfs_metric_kind */
    uint64_t value; /* of a histogram the number of durations; of a gauge 0 when it is below. It
                     * begins again at 2^53, where messages' numbers end */
    double sum;     /* s, of a histogram, as are the next */
    double max;     /* the longest one */
    double p50, p90, p99; /* mfs_metric_quantile */
    uint32_t nbuckets;
    struct mfs_metric_bucket *bucket; /* those that are not empty, in order */
};

/* In the order of registration: every series that is not zero, those of metrics without labels, and
 * those of counters with one label of at most four values, so that what has yet to happen is seen
 * to be counted. */
struct mfs_metric_snapshot {
    uint32_t n;
    struct mfs_metric_sample *sample;
};

/* 0, or -ENOMEM with nothing to free. */
int mfs_metrics_read(struct mfs_metrics *m, struct mfs_metric_snapshot *s);
int mfs_metric_snapshot_copy(struct mfs_metric_snapshot *to, const struct mfs_metric_snapshot *s);
void mfs_metric_snapshot_free(struct mfs_metric_snapshot *s); /* not the struct */
/* Fills in p50, p90 and p99 from the buckets: messages of clients do not have them. */
void mfs_metric_snapshot_quantiles(struct mfs_metric_snapshot *s);

/* A number that changes, as good as certainly, when any figure does. */
uint64_t mfs_metrics_digest(struct mfs_metrics *m);

/* The duration, in s, that a share q (0..1) of the durations does not exceed: by linear
 * interpolation within a bucket, as Prometheus reckons it; 0 when there are none. */
double mfs_metric_quantile(const struct mfs_metric_sample *s, double q);

/* Writes all that are not 0 to the log, a line each, and "end of figures". */
void mfs_metrics_log(struct mfs_metrics *m);

#endif
