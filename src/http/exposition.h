/* Figures as the text that Prometheus and others like it read: its own format (0.0.4), or
 * OpenMetrics (1.0). A family is what one metric's name stands for; all of its samples stand
 * together, behind what says its kind and what it is.
 *
 * A histogram has all of its buckets, cumulated: le is in seconds, powers of two of a µs. Numbers
 * that are whole are written so up to 2^53. */
#ifndef MFS_HTTP_EXPOSITION_H
#define MFS_HTTP_EXPOSITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/metrics.h"

#define MFS_EXPOSITION_PLAIN "text/plain; version=0.0.4; charset=utf-8"
#define MFS_EXPOSITION_OPEN  "application/openmetrics-text"
#define MFS_EXPOSITION_OPEN1 "application/openmetrics-text; version=1.0.0; charset=utf-8"

struct mfs_exposition {
    struct mfs_buf *out;
    bool open;       /* as OpenMetrics */
    const char *all; /* labels that every sample has behind its own; NULL: none */
    int rc;          /* 0, or -ENOMEM: what follows does nothing */
};

/* Begins a family. Counters' names end in "_total". */
void mfs_exposition_family(struct mfs_exposition *e, const char *name, enum mfs_metric_kind kind,
                           const char *help);
/* A sample of it. `labels`: a="b",c="d", as mfs_exposition_label writes them, or "". */
void mfs_exposition_number(struct mfs_exposition *e, const char *name, const char *labels,
                           double value);
/* A family of one sample. */
void mfs_exposition_one(struct mfs_exposition *e, const char *name, enum mfs_metric_kind kind,
                        const char *help, double value);
void mfs_exposition_end(struct mfs_exposition *e); /* nothing comes after that */

/* Appends name="value" to the labels of size n that are there, with a comma where there are some.
 * The value may be any text: what is special is escaped, and bytes that are no UTF-8 become "?".
 * 0, or -ENAMETOOLONG: nothing is appended. */
int mfs_exposition_label(char *labels, size_t n, const char *name, const char *value);

/* A registry as it was, or what a program has told of its own. */
struct mfs_exposition_source {
    const char *labels; /* of all of it */
    const struct mfs_metric_snapshot *figures;
};

/* All families of n sources, each once, in the order in which they come first. */
void mfs_exposition_sources(struct mfs_exposition *e, const struct mfs_exposition_source *s,
                            uint32_t n);

#endif
