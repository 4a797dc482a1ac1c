/* The fields of figures: what a client sends of its own, and what lm tells of all. */
#include "proto/metrics_schemas.h"

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
