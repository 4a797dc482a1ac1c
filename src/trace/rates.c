#include "trace/rates.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MB 1e6

static const struct mfs_metric_sample *find(const struct mfs_metric_snapshot *s, const char *name,
                                            const char *labels)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->sample[i].name, name) == 0 && strcmp(s->sample[i].labels, labels) == 0)
            return &s->sample[i];
    return NULL;
}

/* What has come since; 0 where the client is another one by now. */
static double more(const struct mfs_metric_snapshot *before, const struct mfs_metric_sample *now)
{
    const struct mfs_metric_sample *was = find(before, now->name, now->labels);
    uint64_t least = was != NULL ? was->value : 0;

    return now->value > least ? (double)(now->value - least) : 0;
}

/* Adds the durations that have come since to all[MFS_METRIC_BUCKETS]. */
static void add_durations(const struct mfs_metric_snapshot *before,
                          const struct mfs_metric_sample *now, struct mfs_metric_bucket *all)
{
    const struct mfs_metric_sample *was = find(before, now->name, now->labels);

    for (uint32_t i = 0; i < now->nbuckets; i++)
        if (now->bucket[i].index < MFS_METRIC_BUCKETS)
            all[now->bucket[i].index].count += now->bucket[i].count;
    for (uint32_t i = 0; was != NULL && i < was->nbuckets; i++) {
        struct mfs_metric_bucket *b = &all[was->bucket[i].index];

        if (was->bucket[i].index >= MFS_METRIC_BUCKETS)
            continue;
        b->count -= b->count > was->bucket[i].count ? was->bucket[i].count : b->count;
    }
}

static void add_operation(struct mfs_rates *r, const char *labels, double n)
{
    if (strcmp(labels, "operation=\"read\"") == 0)
        r->read += n;
    else if (strcmp(labels, "operation=\"write\"") == 0)
        r->write += n;
    else
        r->meta += n;
}

static void add(struct mfs_rates *r, const struct mfs_metric_sample *s, double n, double *looked_up,
                double *asked)
{
    bool missing = strcmp(s->labels, "operation=\"lookup\",errno=\"ENOENT\"") == 0;

    if (strcmp(s->name, "memefs_operation_duration_seconds") == 0)
        add_operation(r, s->labels, n);
    else if (strcmp(s->name, "memefs_operation_errors_total") == 0)
        r->errors += missing ? 0 : n;
    else if (strcmp(s->name, "memefs_read_bytes_total") == 0)
        r->read_bytes += n;
    else if (strcmp(s->name, "memefs_written_bytes_total") == 0)
        r->write_bytes += n;
    else if (strcmp(s->name, "memefs_write_window_wait_seconds") == 0)
        r->window_waits += n;
    else if (strcmp(s->name, "memefs_lookups_total") == 0) {
        *looked_up += n;
        *asked += strcmp(s->labels, "answered_by=\"partition\"") == 0 ? n : 0;
    }
}

static void put_quantiles(struct mfs_metric_bucket *bucket, double *p50_ms, double *p99_ms)
{
    struct mfs_metric_sample all = {.kind = MFS_METRIC_HISTOGRAM, .bucket = bucket};

    for (uint32_t i = 0; i < MFS_METRIC_BUCKETS; i++) {
        all.value += bucket[i].count;
        if (bucket[i].count > 0)
            bucket[all.nbuckets++] = (struct mfs_metric_bucket){i, bucket[i].count};
    }
    *p50_ms = mfs_metric_quantile(&all, 0.5) * 1e3;
    *p99_ms = mfs_metric_quantile(&all, 0.99) * 1e3;
}

void mfs_rates_between(const struct mfs_metric_snapshot *before,
                       const struct mfs_metric_snapshot *after, double seconds, struct mfs_rates *r)
{
    struct mfs_metric_bucket bucket[MFS_METRIC_BUCKETS] = {{0}};
    double looked_up = 0, asked = 0;

    *r = (struct mfs_rates){0};
    for (uint32_t i = 0; i < after->n; i++) {
        const struct mfs_metric_sample *s = &after->sample[i];

        add(r, s, more(before, s) / seconds, &looked_up, &asked);
        if (strcmp(s->name, "memefs_operation_duration_seconds") == 0)
            add_durations(before, s, bucket);
    }
    r->hits = looked_up > 0 ? 100 * (1 - asked / looked_up) : -1;
    put_quantiles(bucket, &r->p50_ms, &r->p99_ms);
}

/* ---- by kind of operation -------------------------------------------------------------------- */

static void put_op(const struct mfs_metric_snapshot *before, const struct mfs_metric_sample *s,
                   double seconds, struct mfs_rates_op *op)
{
    const struct mfs_metric_sample *was = find(before, s->name, s->labels);
    struct mfs_metric_bucket bucket[MFS_METRIC_BUCKETS] = {{0}};
    double sum = s->sum - (was != NULL ? was->sum : 0);

    *op = (struct mfs_rates_op){.rate = more(before, s) / seconds,
                                .busy = sum > 0 ? sum / seconds : 0,
                                .all_p50_ms = s->p50 * 1e3,
                                .max_ms = s->max * 1e3,
                                .all = s->value};
    sscanf(s->labels, "operation=\"%23[^\"]", op->name);
    add_durations(before, s, bucket);
    put_quantiles(bucket, &op->p50_ms, &op->p99_ms);
}

static void add_errors(const struct mfs_metric_snapshot *before, const struct mfs_metric_sample *s,
                       double seconds, struct mfs_rates_op *list, uint32_t n)
{
    char name[24] = "";

    if (strcmp(s->labels, "operation=\"lookup\",errno=\"ENOENT\"") == 0)
        return;
    sscanf(s->labels, "operation=\"%23[^\"]", name);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0) {
            list[i].errors += more(before, s) / seconds;
            list[i].all_errors += s->value;
        }
}

int mfs_rates_operations(const struct mfs_metric_snapshot *before,
                         const struct mfs_metric_snapshot *after, double seconds,
                         struct mfs_rates_op **list, uint32_t *n)
{
    *n = 0;
    *list = calloc(after->n + 1, sizeof **list);
    if (*list == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < after->n; i++)
        if (strcmp(after->sample[i].name, "memefs_operation_duration_seconds") == 0)
            put_op(before, &after->sample[i], seconds, &(*list)[(*n)++]);
    for (uint32_t i = 0; i < after->n; i++)
        if (strcmp(after->sample[i].name, "memefs_operation_errors_total") == 0)
            add_errors(before, &after->sample[i], seconds, *list, *n);
    return 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

int mfs_rates_head(struct mfs_buf *to)
{
    return mfs_buf_printf(to, "%9s %9s %9s %9s %9s %8s %8s %7s %6s %7s\n", "meta/s", "reads/s",
                          "writes/s", "MB/s read", "written", "p50 ms", "p99 ms", "errs/s",
                          "hits %", "waits/s");
}

int mfs_rates_text(const struct mfs_rates *r, struct mfs_buf *to)
{
    int rc = mfs_buf_printf(to, "%9.0f %9.0f %9.0f %9.1f %9.1f %8.3f %8.3f %7.0f ", r->meta,
                            r->read, r->write, r->read_bytes / MB, r->write_bytes / MB, r->p50_ms,
                            r->p99_ms, r->errors);

    if (rc == 0)
        rc = r->hits < 0 ? mfs_buf_printf(to, "%6s", "-") : mfs_buf_printf(to, "%6.0f", r->hits);
    return rc < 0 ? rc : mfs_buf_printf(to, " %7.0f\n", r->window_waits);
}

int mfs_rates_json(const struct mfs_rates *r, double time, struct mfs_buf *to)
{
    int rc = mfs_buf_printf(to,
                            "{\"time\": %.3f, \"meta\": %.3f, \"reads\": %.3f, \"writes\": %.3f, "
                            "\"read_bytes\": %.1f, \"written_bytes\": %.1f, \"p50_ms\": %.6f, "
                            "\"p99_ms\": %.6f, \"errors\": %.3f, \"window_waits\": %.3f",
                            time, r->meta, r->read, r->write, r->read_bytes, r->write_bytes,
                            r->p50_ms, r->p99_ms, r->errors, r->window_waits);

    if (rc == 0 && r->hits >= 0)
        rc = mfs_buf_printf(to, ", \"hits\": %.1f", r->hits);
    return rc < 0 ? rc : mfs_buf_append(to, "}\n", 2);
}
