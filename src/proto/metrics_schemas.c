/* The fields of figures: what a client sends of its own, and what lm tells of all. */
#include "proto/metrics_schemas.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/messages.h"

#define FIELDS      (const struct mfs_field[])
#define SOURCES_MAX 1024 /* of a node */

static const char *const kinds[] = {[MFS_METRIC_COUNTER] = "counter",
                                    [MFS_METRIC_GAUGE] = "gauge",
                                    [MFS_METRIC_HISTOGRAM] = "histogram",
                                    NULL};

static const struct mfs_schema bucket_schema = {
    "bucket", sizeof(struct mfs_metric_bucket),
    FIELDS{{.name = "index",
            .required = true,
            MFS_FIELD(U32, struct mfs_metric_bucket, index),
            .max = MFS_METRIC_BUCKETS - 1},
           {.name = "count", .required = true, MFS_FIELD(U64, struct mfs_metric_bucket, count)},
           {0}}};

#define SAMPLE_FIELDS                                                                              \
    {.name = "name", .required = true, MFS_FIELD(STR, struct mfs_metric_sample, name)},            \
        {.name = "labels", MFS_FIELD(STR, struct mfs_metric_sample, labels)},                      \
        {.name = "kind",                                                                           \
         .required = true,                                                                         \
         MFS_FIELD(WORD, struct mfs_metric_sample, kind),                                          \
         .words = kinds},                                                                          \
        {.name = "value", MFS_FIELD(U64, struct mfs_metric_sample, value)},                        \
        {.name = "sum", MFS_FIELD(F64, struct mfs_metric_sample, sum)},                            \
        {.name = "max", MFS_FIELD(F64, struct mfs_metric_sample, max)},                            \
        {.name = "help", MFS_FIELD(STR, struct mfs_metric_sample, help)},                          \
    {                                                                                              \
        .name = "buckets",                                                                         \
        MFS_FIELD_LIST(struct mfs_metric_sample, bucket, nbuckets, &bucket_schema),                \
        .max = MFS_METRIC_BUCKETS                                                                  \
    }

static const struct mfs_schema sample_schema = {"figure", sizeof(struct mfs_metric_sample),
                                                FIELDS{SAMPLE_FIELDS, {0}}};

static const struct mfs_schema shown_schema = {
    "figure", sizeof(struct mfs_metric_sample),
    FIELDS{SAMPLE_FIELDS,
           {.name = "p50", MFS_FIELD(F64, struct mfs_metric_sample, p50)},
           {.name = "p90", MFS_FIELD(F64, struct mfs_metric_sample, p90)},
           {.name = "p99", MFS_FIELD(F64, struct mfs_metric_sample, p99)},
           {0}}};

const struct mfs_schema mfs_metrics_schema = {
    "metrics", sizeof(struct mfs_metric_snapshot),
    FIELDS{{.name = "figures",
            .required = true,
            MFS_FIELD_LIST(struct mfs_metric_snapshot, sample, n, &sample_schema),
            .max = MFS_METRIC_SAMPLES_MAX},
           {0}}};

static const struct mfs_schema source_schema = {
    "source", sizeof(struct mfs_stats_source),
    FIELDS{{.name = "program", MFS_FIELD(STR, struct mfs_stats_source, program)},
           {.name = "pid", MFS_FIELD(U32, struct mfs_stats_source, pid)},
           {.name = "mount", MFS_FIELD(STR, struct mfs_stats_source, mount)},
           {.name = "age_ms", MFS_FIELD(U64, struct mfs_stats_source, age_ms)},
           {.name = "figures",
            MFS_FIELD_LIST(struct mfs_stats_source, figures.sample, figures.n, &shown_schema),
            .max = MFS_METRIC_SAMPLES_MAX},
           {0}}};

const struct mfs_schema mfs_stats_schema = {
    "stats", sizeof(struct mfs_stats),
    FIELDS{{.name = "sources",
            MFS_FIELD_LIST(struct mfs_stats, source, nsources, &source_schema),
            .max = SOURCES_MAX},
           {0}}};

/* ---- clients, as cm is told of them ---------------------------------------------------------- */

static const struct mfs_schema hot_item_schema = {
    "hot", sizeof(struct mfs_hot_item),
    FIELDS{{.name = "name", .required = true, MFS_FIELD(STR, struct mfs_hot_item, name)},
           {.name = "requests", MFS_FIELD(F64, struct mfs_hot_item, requests)},
           {.name = "bytes", MFS_FIELD(F64, struct mfs_hot_item, bytes)},
           {.name = "ms", MFS_FIELD(F64, struct mfs_hot_item, ms)},
           {0}}};

const struct mfs_schema mfs_hot_schema = {
    "hot", sizeof(struct mfs_hot),
    FIELDS{{.name = "requests", MFS_FIELD(F64, struct mfs_hot, requests)},
           {.name = "files",
            MFS_FIELD_LIST(struct mfs_hot, file, nfiles, &hot_item_schema),
            .max = MFS_HOT_MOST},
           {.name = "directories",
            MFS_FIELD_LIST(struct mfs_hot, dir, ndirs, &hot_item_schema),
            .max = MFS_HOT_MOST},
           {.name = "processes",
            MFS_FIELD_LIST(struct mfs_hot, program, nprograms, &hot_item_schema),
            .max = MFS_HOT_MOST},
           {0}}};

#define MOUNT_FIELDS                                                                               \
    {.name = "node", MFS_FIELD(STR, struct mfs_mount, node)},                                      \
        {.name = "host", MFS_FIELD(STR, struct mfs_mount, host)},                                  \
        {.name = "path", MFS_FIELD(STR, struct mfs_mount, path)},                                  \
        {.name = "pid", MFS_FIELD(U32, struct mfs_mount, pid)},                                    \
        {.name = "uid", MFS_FIELD(U32, struct mfs_mount, uid)},                                    \
        {.name = "session", MFS_FIELD(STR, struct mfs_mount, session)},                            \
        {.name = "version", MFS_FIELD(STR, struct mfs_mount, version)},                            \
        {.name = "connected", MFS_FIELD(BOOL, struct mfs_mount, connected)},                       \
        {.name = "ready", MFS_FIELD(BOOL, struct mfs_mount, ready)},                               \
        {.name = "since", MFS_FIELD(U64, struct mfs_mount, since)},                                \
        {.name = "age_ms", MFS_FIELD(U64, struct mfs_mount, age_ms)},                              \
        {.name = "operations", MFS_FIELD(U64, struct mfs_mount, operations)},                      \
        {.name = "errors", MFS_FIELD(U64, struct mfs_mount, errors)},                              \
        {.name = "no_space", MFS_FIELD(U64, struct mfs_mount, no_space)},                          \
        {.name = "io_errors", MFS_FIELD(U64, struct mfs_mount, io_errors)},                        \
        {.name = "read_bytes", MFS_FIELD(U64, struct mfs_mount, read_bytes)},                      \
        {.name = "written_bytes", MFS_FIELD(U64, struct mfs_mount, written_bytes)},                \
        {.name = "sent_bytes", MFS_FIELD(U64, struct mfs_mount, sent_bytes)},                      \
        {.name = "received_bytes", MFS_FIELD(U64, struct mfs_mount, received_bytes)},              \
        {.name = "p50", MFS_FIELD(F64, struct mfs_mount, p50)},                                    \
        {.name = "p99", MFS_FIELD(F64, struct mfs_mount, p99)},                                    \
    {                                                                                              \
        .name = "max", MFS_FIELD(F64, struct mfs_mount, max)                                       \
    }

const struct mfs_schema mfs_mount_schema = {"mount", sizeof(struct mfs_mount),
                                            FIELDS{MOUNT_FIELDS, {0}}};

static const struct mfs_schema mount_full_schema = {
    "mount", sizeof(struct mfs_mount),
    FIELDS{MOUNT_FIELDS,
           {.name = "hot", MFS_FIELD(OBJECT, struct mfs_mount, hot), .sub = &mfs_hot_schema},
           {.name = "figures",
            MFS_FIELD_LIST(struct mfs_mount, figures.sample, figures.n, &sample_schema),
            .max = MFS_METRIC_SAMPLES_MAX},
           {0}}};

const struct mfs_schema mfs_mounts_ask_schema = {
    "mounts", sizeof(struct mfs_msg_mounts),
    FIELDS{{.name = "buckets", MFS_FIELD(BOOL, struct mfs_msg_mounts, buckets)}, {0}}};

const struct mfs_schema mfs_clients_ask_schema = {
    "clients", sizeof(struct mfs_msg_clients),
    FIELDS{{.name = "most", MFS_FIELD(U32, struct mfs_msg_clients, most)}, {0}}};

#define TOLD_FIELDS(type)                                                                          \
    {.name = "age_ms", MFS_FIELD(U64, type, told.age_ms)},                                         \
        {.name = "stale", MFS_FIELD(BOOL, type, told.stale)},                                      \
    {                                                                                              \
        .name = "nothing", MFS_FIELD(BOOL, type, told.nothing)                                     \
    }

static const struct mfs_schema mounts_op_schema = {
    "operation", sizeof(struct mfs_mounts_op),
    FIELDS{{.name = "name", MFS_FIELD(STR, struct mfs_mounts_op, name)},
           {.name = "operations", MFS_FIELD(U64, struct mfs_mounts_op, operations)},
           {.name = "errors", MFS_FIELD(U64, struct mfs_mounts_op, errors)},
           {.name = "seconds", MFS_FIELD(F64, struct mfs_mounts_op, seconds)},
           {.name = "max", MFS_FIELD(F64, struct mfs_mounts_op, max)},
           {0}}};

const struct mfs_schema mfs_mounts_hot_schema = {
    "hot", sizeof(struct mfs_mounts_hot),
    FIELDS{{.name = "name", MFS_FIELD(STR, struct mfs_mounts_hot, name)},
           {.name = "rate", MFS_FIELD(F64, struct mfs_mounts_hot, rate)},
           {.name = "mounts", MFS_FIELD(U32, struct mfs_mounts_hot, mounts)},
           {0}}};

const struct mfs_schema mfs_mounts_schema = {
    "clients", sizeof(struct mfs_mounts),
    FIELDS{
        TOLD_FIELDS(struct mfs_mounts),
        {.name = "left_out", MFS_FIELD(U32, struct mfs_mounts, left_out)},
        {.name = "clients", MFS_FIELD_LIST(struct mfs_mounts, mount, n, &mfs_mount_schema)},
        {.name = "operations", MFS_FIELD_LIST(struct mfs_mounts, op, nops, &mounts_op_schema)},
        {.name = "files", MFS_FIELD_LIST(struct mfs_mounts, file, nfiles, &mfs_mounts_hot_schema)},
        {.name = "directories",
         MFS_FIELD_LIST(struct mfs_mounts, dir, ndirs, &mfs_mounts_hot_schema)},
        {0}}};

const struct mfs_schema mfs_event_schema = {
    "event", sizeof(struct mfs_event),
    FIELDS{{.name = "time", MFS_FIELD(STR, struct mfs_event, time)},
           {.name = "who", MFS_FIELD(STR, struct mfs_event, who)},
           {.name = "what", MFS_FIELD(STR, struct mfs_event, what)},
           {.name = "text", MFS_FIELD(STR, struct mfs_event, text)},
           {0}}};

const struct mfs_schema mfs_events_schema = {
    "events", sizeof(struct mfs_events),
    FIELDS{TOLD_FIELDS(struct mfs_events),
           {.name = "events",
            MFS_FIELD_LIST(struct mfs_events, event, n, &mfs_event_schema),
            .max = MFS_EVENTS_RECENT},
           {0}}};

const struct mfs_schema mfs_mounts_full_schema = {
    "mounts", sizeof(struct mfs_mounts),
    FIELDS{{.name = "mounts",
            MFS_FIELD_LIST(struct mfs_mounts, mount, n, &mount_full_schema),
            .max = SOURCES_MAX},
           {0}}};

#define DURATION "memefs_operation_duration_seconds"
#define ERRORS   "memefs_operation_errors_total"
#define READ     "memefs_read_bytes_total"
#define WRITTEN  "memefs_written_bytes_total"
#define SENT     "memefs_sent_bytes_total"
#define RECEIVED "memefs_received_bytes_total"

const char *const mfs_mount_figures[] = {DURATION,
                                         ERRORS,
                                         READ,
                                         WRITTEN,
                                         "memefs_no_space_total",
                                         "memefs_data_errors_total",
                                         "memefs_write_back_failures_total",
                                         "memefs_write_back_lost_bytes_total",
                                         SENT,
                                         RECEIVED,
                                         NULL};

void mfs_mount_durations(const struct mfs_metric_snapshot *figures, struct mfs_metric_sample *all,
                         struct mfs_metric_bucket list[MFS_METRIC_BUCKETS])
{
    uint64_t bucket[MFS_METRIC_BUCKETS] = {0};

    *all = (struct mfs_metric_sample){
        .name = MFS_MOUNT_DURATIONS, .kind = MFS_METRIC_HISTOGRAM, .bucket = list};
    for (uint32_t i = 0; i < figures->n; i++) {
        const struct mfs_metric_sample *s = &figures->sample[i];

        if (strcmp(s->name, DURATION) != 0)
            continue;
        all->value += s->value;
        all->sum += s->sum;
        all->max = s->max > all->max ? s->max : all->max;
        for (uint32_t k = 0; k < s->nbuckets; k++)
            bucket[s->bucket[k].index] += s->bucket[k].count;
    }
    for (uint32_t i = 0; i < MFS_METRIC_BUCKETS; i++)
        if (bucket[i])
            list[all->nbuckets++] = (struct mfs_metric_bucket){i, bucket[i]};
}

static void add_error(struct mfs_mount *m, const struct mfs_metric_sample *s)
{
    m->errors += s->value;
    if (strstr(s->labels, "errno=\"ENOSPC\""))
        m->no_space += s->value;
    else if (strstr(s->labels, "errno=\"EIO\""))
        m->io_errors += s->value;
}

void mfs_mount_sum_up(struct mfs_mount *m, const struct mfs_metric_snapshot *figures)
{
    struct mfs_metric_bucket list[MFS_METRIC_BUCKETS];
    struct mfs_metric_sample all;

    mfs_mount_durations(figures, &all, list);
    for (uint32_t i = 0; i < figures->n; i++) {
        const struct mfs_metric_sample *s = &figures->sample[i];

        if (!strcmp(s->name, ERRORS))
            add_error(m, s);
        else if (!strcmp(s->name, READ))
            m->read_bytes += s->value;
        else if (!strcmp(s->name, WRITTEN))
            m->written_bytes += s->value;
        else if (!strcmp(s->name, SENT))
            m->sent_bytes += s->value;
        else if (!strcmp(s->name, RECEIVED))
            m->received_bytes += s->value;
    }
    m->operations = all.value;
    m->p50 = mfs_metric_quantile(&all, 0.50);
    m->p99 = mfs_metric_quantile(&all, 0.99);
    m->max = all.max;
}

static int copy_items(struct mfs_hot_item **to, uint32_t *count, const struct mfs_hot_item *from,
                      uint32_t n)
{
    *to = calloc(n + 1, sizeof **to);
    if (!*to)
        return -ENOMEM;
    if (n)
        memcpy(*to, from, n * sizeof **to);
    *count = n;
    return 0;
}

int mfs_hot_copy(struct mfs_hot *to, const struct mfs_hot *hot)
{
    int rc;

    *to = (struct mfs_hot){.requests = hot->requests};
    rc = copy_items(&to->file, &to->nfiles, hot->file, hot->nfiles);
    if (!rc)
        rc = copy_items(&to->dir, &to->ndirs, hot->dir, hot->ndirs);
    if (!rc)
        rc = copy_items(&to->program, &to->nprograms, hot->program, hot->nprograms);
    if (rc)
        mfs_schema_clear(&mfs_hot_schema, to);
    return rc;
}

int mfs_mount_copy(struct mfs_mount *to, const struct mfs_mount *m)
{
    int rc;

    *to = *m;
    to->hot = (struct mfs_hot){0};
    rc = mfs_metric_snapshot_copy(&to->figures, &m->figures);
    if (!rc && mfs_hot_copy(&to->hot, &m->hot)) {
        mfs_metric_snapshot_free(&to->figures);
        rc = -ENOMEM;
    }
    return rc;
}

void mfs_mount_free(struct mfs_mount *m)
{
    mfs_metric_snapshot_free(&m->figures);
    mfs_schema_clear(&mfs_hot_schema, &m->hot);
}
