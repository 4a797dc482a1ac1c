/* Snapshots of a registry: what can be sent, shown and logged. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics_impl.h"
#include "base/text.h"

#define VALUE_MASK    ((1ULL << 53) - 1)    /* numbers of messages, and Prometheus', end there */
#define ALWAYS_TOLD   4U                    /* series of a counter */
#define DIGEST_FACTOR 0x9e3779b97f4a7c15ULL /* odd */

static void put_labels(const struct mfs_metric *m, unsigned series, char *out, size_t size)
{
    const struct mfs_metric_label *a = &m->label[0], *b = &m->label[1];
    unsigned second = b->name ? b->n : 1;

    out[0] = '\0';
    if (a->name && b->name)
        mfs_text_format(out, size, "%s=\"%s\",%s=\"%s\"", a->name, a->values[series / second],
                        b->name, b->values[series % second]);
    else if (a->name)
        mfs_text_format(out, size, "%s=\"%s\"", a->name, a->values[series]);
}

static int put_buckets(const uint64_t *total, struct mfs_metric_sample *s)
{
    uint32_t n = 0;

    for (unsigned i = 0; i < MFS_METRIC_BUCKETS; i++) {
        s->value += total[i];
        n += total[i] > 0;
    }
    s->sum = (double)total[MFS_METRIC_CELL_SUM] / (double)MFS_SEC;
    s->max = (double)total[MFS_METRIC_CELL_MAX] / (double)MFS_SEC;
    s->bucket = n ? calloc(n, sizeof *s->bucket) : NULL;
    if (n && !s->bucket)
        return -ENOMEM;
    for (unsigned i = 0; i < MFS_METRIC_BUCKETS; i++)
        if (total[i])
            s->bucket[s->nbuckets++] = (struct mfs_metric_bucket){i, total[i]};
    return 0;
}

static bool is_told(const struct mfs_metric *m, const struct mfs_metric_sample *s)
{
    return s->value > 0 || !m->label[0].name ||
           (m->kind == MFS_METRIC_COUNTER && !m->label[1].name && m->label[0].n <= ALWAYS_TOLD);
}

/* `total`: of the series' cells. */
static int put_sample(const struct mfs_metric *m, unsigned series, const uint64_t *total,
                      struct mfs_metric_sample *s)
{
    int rc = 0;

    *s = (struct mfs_metric_sample){.kind = m->kind};
    if (m->kind == MFS_METRIC_HISTOGRAM)
        rc = put_buckets(total, s);
    else if (m->kind == MFS_METRIC_COUNTER || total[0] <= INT64_MAX)
        s->value = total[0]; /* a gauge may be below for the moment between two copies */
    s->value &= VALUE_MASK;
    if (is_told(m, s)) {
        mfs_text_copy(s->name, sizeof s->name, m->name);
        put_labels(m, series, s->labels, sizeof s->labels);
    }
    return rc;
}

static int put_metric(const struct mfs_metric *m, const struct mfs_metric_place *p,
                      const uint64_t *total, struct mfs_metric_snapshot *s)
{
    uint32_t first = s->n;
    int rc = 0;

    for (uint32_t i = 0; i < p->series && !rc && s->n < MFS_METRIC_SAMPLES_MAX; i++) {
        rc = put_sample(m, i, total + p->first + (size_t)i * p->width, &s->sample[s->n]);
        if (!rc && is_told(m, &s->sample[s->n]))
            s->n++;
    }
    if (s->n > first && m->help)
        mfs_text_copy(s->sample[first].help, sizeof s->sample[first].help, m->help);
    return rc;
}

/* Of histograms' longest durations, which do not add up. */
static void put_longest(const struct mfs_metric_set *set, const struct mfs_metric_place *p,
                        uint64_t *total)
{
    for (uint32_t i = 0; i < p->series && p->width == MFS_METRIC_CELL_COUNT; i++) {
        size_t cell = p->first + (size_t)i * p->width + MFS_METRIC_CELL_MAX;

        total[cell] = mfs_metric_most(set, cell);
    }
}

static int read_set(const struct mfs_metric_set *set, struct mfs_metric_snapshot *s)
{
    uint64_t *total = calloc(set->cells, sizeof *total);
    int rc = total ? 0 : -ENOMEM;

    if (!rc)
        mfs_metric_totals(set, 0, set->cells, total);
    for (unsigned i = 0; i < set->n && !rc; i++)
        put_longest(set, &set->place[i], total);
    for (unsigned i = 0; i < set->n && !rc; i++)
        rc = put_metric(&set->table[i], &set->place[i], total, s);
    free(total);
    return rc;
}

static void shrink(struct mfs_metric_snapshot *s)
{
    struct mfs_metric_sample *less = realloc(s->sample, (s->n + 1) * sizeof *less);

    if (less)
        s->sample = less;
}

int mfs_metrics_read(struct mfs_metrics *m, struct mfs_metric_snapshot *s)
{
    int rc = 0;

    *s = (struct mfs_metric_snapshot){
        .sample = calloc(MFS_METRIC_SAMPLES_MAX + 1, sizeof(struct mfs_metric_sample))};
    if (!s->sample)
        return -ENOMEM;
    pthread_mutex_lock(&m->lock);
    for (struct mfs_metric_set *set = m->first; set && !rc; set = set->next)
        rc = read_set(set, s);
    pthread_mutex_unlock(&m->lock);
    if (rc) {
        mfs_metric_snapshot_free(s);
        return rc;
    }
    shrink(s);
    mfs_metric_snapshot_quantiles(s);
    return 0;
}

static int copy_sample(struct mfs_metric_sample *to, const struct mfs_metric_sample *s)
{
    size_t bytes = s->nbuckets * sizeof *s->bucket;

    *to = *s;
    to->bucket = bytes ? malloc(bytes) : NULL;
    if (bytes && !to->bucket)
        return -ENOMEM;
    if (bytes)
        memcpy(to->bucket, s->bucket, bytes);
    return 0;
}

int mfs_metric_snapshot_copy(struct mfs_metric_snapshot *to, const struct mfs_metric_snapshot *s)
{
    int rc = 0;

    *to = (struct mfs_metric_snapshot){.sample = calloc(s->n + 1, sizeof *to->sample)};
    if (!to->sample)
        return -ENOMEM;
    while (to->n < s->n && !rc) {
        rc = copy_sample(&to->sample[to->n], &s->sample[to->n]);
        to->n += !rc;
    }
    if (rc)
        mfs_metric_snapshot_free(to);
    return rc;
}

void mfs_metric_snapshot_free(struct mfs_metric_snapshot *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        free(s->sample[i].bucket);
    free(s->sample);
    *s = (struct mfs_metric_snapshot){0};
}

uint64_t mfs_metrics_digest(struct mfs_metrics *m)
{
    uint64_t digest = 0;

    pthread_mutex_lock(&m->lock);
    for (const struct mfs_metric_set *set = m->first; set; set = set->next)
        for (size_t i = 0, n = mfs_metric_cells(set); i < n; i++)
            digest =
                digest * DIGEST_FACTOR + atomic_load_explicit(set->cell + i, memory_order_relaxed);
    pthread_mutex_unlock(&m->lock);
    return digest;
}

static double bound(int index)
{
    return index < 0 ? 0 : (double)(1ULL << index) / 1e6;
}

double mfs_metric_quantile(const struct mfs_metric_sample *s, double q)
{
    double rank = q * (double)s->value, below = 0;

    for (uint32_t i = 0; i < s->nbuckets; i++) {
        int index = (int)s->bucket[i].index;
        double here = (double)s->bucket[i].count, from = bound(index - 1);

        if (below + here >= rank || i + 1 == s->nbuckets)
            return index + 1 == (int)MFS_METRIC_BUCKETS
                       ? from /* longer than that; how much is not known */
                       : from + (bound(index) - from) * (rank - below) / here;
        below += here;
    }
    return 0;
}

void mfs_metric_snapshot_quantiles(struct mfs_metric_snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->n; i++) {
        struct mfs_metric_sample *s = &snapshot->sample[i];

        s->p50 = mfs_metric_quantile(s, 0.50);
        s->p90 = mfs_metric_quantile(s, 0.90);
        s->p99 = mfs_metric_quantile(s, 0.99);
    }
}

static void log_sample(const struct mfs_metric_sample *s)
{
    const char *open = s->labels[0] ? "{" : "", *close = s->labels[0] ? "}" : "";

    if (s->kind == MFS_METRIC_HISTOGRAM)
        mfs_info("stats", "%s%s%s%s count=%llu sum=%.6f p50=%.6f p90=%.6f p99=%.6f max=%.6f",
                 s->name, open, s->labels, close, (unsigned long long)s->value, s->sum, s->p50,
                 s->p90, s->p99, s->max);
    else
        mfs_info("stats", "%s%s%s%s %llu", s->name, open, s->labels, close,
                 (unsigned long long)s->value);
}

void mfs_metrics_log(struct mfs_metrics *m)
{
    struct mfs_metric_snapshot s;
    int rc = mfs_metrics_read(m, &s);

    if (rc) {
        mfs_warn("stats", "figures: %s", strerror(-rc));
        return;
    }
    for (uint32_t i = 0; i < s.n; i++)
        if (s.sample[i].value > 0)
            log_sample(&s.sample[i]);
    mfs_info("stats", "end of figures");
    mfs_metric_snapshot_free(&s);
}
