#include "cli/top/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/shown.h"
#include "base/text.h"
#include "show/figures.h"
#include "show/json.h"

#define FIELDS (const struct mfs_field[])

const char *const mfs_mount_top_order_names[MFS_MOUNT_TOP_ORDERS] = {
    [MFS_MOUNT_TOP_BY_RATE] = "rate",
    [MFS_MOUNT_TOP_BY_TIME] = "time",
    [MFS_MOUNT_TOP_BY_P99] = "p99",
    [MFS_MOUNT_TOP_BY_ERRORS] = "errors",
    [MFS_MOUNT_TOP_BY_NAME] = "name"};

static const struct mfs_schema op_schema = {
    "operation", sizeof(struct mfs_rates_op),
    FIELDS{{.name = "name", MFS_FIELD(STR, struct mfs_rates_op, name)},
           {.name = "rate", MFS_FIELD(F64, struct mfs_rates_op, rate)},
           {.name = "errors_rate", MFS_FIELD(F64, struct mfs_rates_op, errors)},
           {.name = "p50_ms", MFS_FIELD(F64, struct mfs_rates_op, p50_ms)},
           {.name = "p99_ms", MFS_FIELD(F64, struct mfs_rates_op, p99_ms)},
           {.name = "busy", MFS_FIELD(F64, struct mfs_rates_op, busy)},
           {.name = "all", MFS_FIELD(U64, struct mfs_rates_op, all)},
           {.name = "all_errors", MFS_FIELD(U64, struct mfs_rates_op, all_errors)},
           {.name = "all_p50_ms", MFS_FIELD(F64, struct mfs_rates_op, all_p50_ms)},
           {.name = "max_ms", MFS_FIELD(F64, struct mfs_rates_op, max_ms)},
           {0}}};

static const struct mfs_schema node_schema = {
    "node", sizeof(struct mfs_mount_top_node),
    FIELDS{{.name = "node", MFS_FIELD(U32, struct mfs_mount_top_node, node)},
           {.name = "partitions", MFS_FIELD(U32, struct mfs_mount_top_node, partitions)},
           {.name = "rate", MFS_FIELD(F64, struct mfs_mount_top_node, rate)},
           {.name = "mean_ms", MFS_FIELD(F64, struct mfs_mount_top_node, mean_ms)},
           {.name = "under_way", MFS_FIELD(U32, struct mfs_mount_top_node, under_way)},
           {.name = "silent_s", MFS_FIELD(F64, struct mfs_mount_top_node, silent_s)},
           {0}}};

static const struct mfs_schema hot_schema = {
    "hot", sizeof(struct mfs_mount_top_hot),
    FIELDS{{.name = "name", MFS_FIELD(STR, struct mfs_mount_top_hot, name)},
           {.name = "share", MFS_FIELD(F64, struct mfs_mount_top_hot, share)},
           {.name = "rate", MFS_FIELD(F64, struct mfs_mount_top_hot, rate)},
           {.name = "bytes_rate", MFS_FIELD(F64, struct mfs_mount_top_hot, bytes_rate)},
           {.name = "mean_ms", MFS_FIELD(F64, struct mfs_mount_top_hot, mean_ms)},
           {0}}};

static const struct mfs_schema top_schema = {
    "top", sizeof(struct mfs_mount_top),
    FIELDS{{.name = "mount", MFS_FIELD(STR, struct mfs_mount_top, mount)},
           {.name = "time", MFS_FIELD(F64, struct mfs_mount_top, time)},
           {.name = "seconds", MFS_FIELD(F64, struct mfs_mount_top, seconds)},
           {.name = "operations_rate", MFS_FIELD(F64, struct mfs_mount_top, operations)},
           {.name = "errors_rate", MFS_FIELD(F64, struct mfs_mount_top, rates.errors)},
           {.name = "read_rate", MFS_FIELD(F64, struct mfs_mount_top, rates.read_bytes)},
           {.name = "written_rate", MFS_FIELD(F64, struct mfs_mount_top, rates.write_bytes)},
           {.name = "p50_ms", MFS_FIELD(F64, struct mfs_mount_top, rates.p50_ms)},
           {.name = "p99_ms", MFS_FIELD(F64, struct mfs_mount_top, rates.p99_ms)},
           {.name = "under_way", MFS_FIELD(U64, struct mfs_mount_top, under_way)},
           {.name = "waiting", MFS_FIELD(U64, struct mfs_mount_top, waiting)},
           {.name = "operations", MFS_FIELD_LIST(struct mfs_mount_top, op, nops, &op_schema)},
           {.name = "nodes", MFS_FIELD_LIST(struct mfs_mount_top, node, nnodes, &node_schema)},
           {.name = "samples", MFS_FIELD(BOOL, struct mfs_mount_top, samples)},
           {.name = "files", MFS_FIELD_LIST(struct mfs_mount_top, file, nfiles, &hot_schema)},
           {.name = "directories", MFS_FIELD_LIST(struct mfs_mount_top, dir, ndirs, &hot_schema)},
           {.name = "processes",
            MFS_FIELD_LIST(struct mfs_mount_top, program, nprograms, &hot_schema)},
           {0}}};

void mfs_mount_reading_clear(struct mfs_mount_reading *r)
{
    mfs_schema_clear(&mfs_stats_schema, &r->stats);
    mfs_trace_nodes_free(&r->nodes);
    mfs_schema_clear(&mfs_hot_schema, &r->hot);
    *r = (struct mfs_mount_reading){0};
}

void mfs_mount_top_clear(struct mfs_mount_top *t)
{
    mfs_schema_clear(&top_schema, t);
    *t = (struct mfs_mount_top){0};
}

/* ---- making it ------------------------------------------------------------------------------- */

static const struct mfs_trace_node *same_node(const struct mfs_trace_nodes *nodes, uint32_t node)
{
    for (uint32_t i = 0; i < nodes->n; i++)
        if (nodes->node[i].node == node)
            return &nodes->node[i];
    return NULL;
}

static int make_nodes(struct mfs_mount_top *t, const struct mfs_trace_nodes *before,
                      const struct mfs_trace_nodes *now)
{
    t->node = calloc(now->n + 1, sizeof *t->node);
    if (t->node == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < now->n; i++) {
        const struct mfs_trace_node *n = &now->node[i], *was = same_node(before, n->node);
        struct mfs_mount_top_node *to = &t->node[t->nnodes++];
        uint64_t trips = was != NULL ? was->round_trips : 0;

        *to = (struct mfs_mount_top_node){.node = n->node,
                                          .partitions = n->partitions,
                                          .under_way = n->under_way,
                                          .silent_s = n->silent_ms / 1e3};
        if (t->seconds <= 0 || was == NULL || n->round_trips <= trips)
            continue;
        to->rate = (double)(n->round_trips - trips) / t->seconds;
        to->mean_ms = (n->ms - was->ms) / (double)(n->round_trips - trips);
    }
    return 0;
}

static int make_hot(const struct mfs_mount_top *t, double all, const struct mfs_hot_item *item,
                    uint32_t n, struct mfs_mount_top_hot **list, uint32_t *count)
{
    *list = calloc(n + 1, sizeof **list);
    if (*list == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < n && all > 0 && item[i].requests > 0; i++) {
        struct mfs_mount_top_hot *h = &(*list)[(*count)++];

        memcpy(h->name, item[i].name, sizeof h->name);
        h->share = item[i].requests / all;
        h->rate = h->share * t->operations;
        h->bytes_rate = item[i].bytes / all * t->operations;
        h->mean_ms = item[i].ms / item[i].requests;
    }
    return 0;
}

static uint64_t figure(const struct mfs_metric_snapshot *s, const char *name)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->sample[i].name, name) == 0)
            return s->sample[i].value;
    return 0;
}

static const struct mfs_metric_snapshot *figures_of(const struct mfs_mount_reading *r)
{
    static const struct mfs_metric_snapshot none;

    return r->stats.nsources > 0 ? &r->stats.source[0].figures : &none;
}

static bool is_same_client(const struct mfs_mount_reading *a, const struct mfs_mount_reading *b)
{
    return a->at > 0 && a->at < b->at && a->stats.nsources > 0 && b->stats.nsources > 0 &&
           a->stats.source[0].pid == b->stats.source[0].pid;
}

int mfs_mount_top_make(struct mfs_mount_top *t, const char *mount,
                       const struct mfs_mount_reading *before, const struct mfs_mount_reading *r)
{
    const struct mfs_metric_snapshot *now = figures_of(r);
    struct timespec real = mfs_clock_real();
    bool same = is_same_client(before, r);
    /* Without a former reading nothing has come since. */
    const struct mfs_mount_reading *was = same ? before : r;
    double seconds = same ? (double)(r->at - before->at) / (double)MFS_SEC : 1;
    int rc;

    *t = (struct mfs_mount_top){.time = (double)real.tv_sec + (double)real.tv_nsec / 1e9,
                                .seconds = same ? seconds : 0,
                                .under_way = figure(now, "memefs_requests_under_way"),
                                .waiting = figure(now, "memefs_requests_waiting"),
                                .samples = r->samples};
    mfs_text_copy(t->mount, sizeof t->mount, mount);
    mfs_rates_between(figures_of(was), now, seconds, &t->rates);
    t->operations = t->rates.meta + t->rates.read + t->rates.write;
    rc = mfs_rates_operations(figures_of(was), now, seconds, &t->op, &t->nops);
    if (rc == 0)
        rc = make_nodes(t, &was->nodes, &r->nodes);
    if (rc == 0)
        rc = make_hot(t, r->hot.requests, r->hot.file, r->hot.nfiles, &t->file, &t->nfiles);
    if (rc == 0)
        rc = make_hot(t, r->hot.requests, r->hot.dir, r->hot.ndirs, &t->dir, &t->ndirs);
    if (rc == 0)
        rc = make_hot(t, r->hot.requests, r->hot.program, r->hot.nprograms, &t->program,
                      &t->nprograms);
    if (rc < 0)
        mfs_mount_top_clear(t);
    return rc;
}

/* ---- order ----------------------------------------------------------------------------------- */

struct sorting {
    const struct mfs_mount_top *t;
    enum mfs_mount_top_order order;
};

static double value(const struct sorting *s, const struct mfs_rates_op *op)
{
    switch (s->order) {
    case MFS_MOUNT_TOP_BY_RATE:
        return op->rate;
    case MFS_MOUNT_TOP_BY_TIME:
        return op->busy;
    case MFS_MOUNT_TOP_BY_P99:
        return op->p99_ms;
    case MFS_MOUNT_TOP_BY_ERRORS:
        return op->errors;
    default:
        return 0;
    }
}

static int compare(const void *a, const void *b, void *arg)
{
    const struct sorting *s = arg;
    const struct mfs_rates_op *x = &s->t->op[*(const uint32_t *)a];
    const struct mfs_rates_op *y = &s->t->op[*(const uint32_t *)b];
    double vx = value(s, x), vy = value(s, y);

    if (vx > vy || vx < vy)
        return vx > vy ? -1 : 1;
    return strcmp(x->name, y->name);
}

void mfs_mount_top_sort(const struct mfs_mount_top *t, enum mfs_mount_top_order order,
                        uint32_t *out)
{
    struct sorting s = {t, order};

    for (uint32_t i = 0; i < t->nops; i++)
        out[i] = i;
    if (t->nops > 0)
        qsort_r(out, t->nops, sizeof *out, compare, &s);
}

/* ---- as text --------------------------------------------------------------------------------- */

static int put_ops(const struct mfs_mount_top *t, struct mfs_buf *to)
{
    uint32_t *order = calloc(t->nops + 1, sizeof *order);
    char p50[16], p99[16];
    int rc = order != NULL ? 0 : -ENOMEM;

    if (rc == 0) {
        mfs_mount_top_sort(t, MFS_MOUNT_TOP_BY_RATE, order);
        rc = mfs_buf_printf(to, "\n%-16s %10s %8s %9s %9s %6s\n", "operation", "ops/s", "err/s",
                            "p50", "p99", "busy");
    }
    for (uint32_t i = 0; i < t->nops && rc == 0; i++) {
        const struct mfs_rates_op *op = &t->op[order[i]];

        if (op->rate <= 0)
            break;
        rc = mfs_buf_printf(to, "%-16s %10.1f %8.1f %9s %9s %6.2f\n", op->name, op->rate,
                            op->errors, mfs_show_duration(op->p50_ms / 1e3, p50),
                            mfs_show_duration(op->p99_ms / 1e3, p99), op->busy);
    }
    free(order);
    return rc;
}

static int put_nodes(const struct mfs_mount_top *t, struct mfs_buf *to)
{
    char mean[16];
    int rc = mfs_buf_printf(to, "\n%-16s %10s %8s %9s\n", "node", "trips/s", "under way", "mean");

    for (uint32_t i = 0; i < t->nnodes && rc == 0; i++)
        rc =
            mfs_buf_printf(to, "%-16u %10.1f %8u %9s\n", t->node[i].node, t->node[i].rate,
                           t->node[i].under_way, mfs_show_duration(t->node[i].mean_ms / 1e3, mean));
    return rc;
}

static int put_hot(const char *title, const struct mfs_mount_top_hot *h, uint32_t n,
                   struct mfs_buf *to)
{
    char mean[16];
    int rc =
        mfs_buf_printf(to, "\n%6s %10s %10s %9s  %s\n", "share", "ops/s", "bytes/s", "mean", title);

    for (uint32_t i = 0; i < n && i < 10 && rc == 0; i++) {
        rc = mfs_buf_printf(to, "%5.1f%% %10.1f %10s %9s  ", 100 * h[i].share, h[i].rate,
                            MFS_TEXT_BYTES((uint64_t)h[i].bytes_rate),
                            mfs_show_duration(h[i].mean_ms / 1e3, mean));
        if (rc == 0)
            rc = mfs_shown_shell(to, h[i].name);
        if (rc == 0)
            rc = mfs_buf_append(to, "\n", 1);
    }
    return rc;
}

int mfs_mount_top_text(const struct mfs_mount_top *t, struct mfs_buf *to)
{
    char p50[16], p99[16];
    int rc = mfs_shown_shell(to, t->mount);

    if (rc == 0)
        rc = mfs_buf_printf(to,
                            ": %.0f operations/s, reads %s/s, writes %s/s, half within %s, "
                            "99%% within %s; %llu under way, %llu waiting\n",
                            t->operations, MFS_TEXT_BYTES((uint64_t)t->rates.read_bytes),
                            MFS_TEXT_BYTES((uint64_t)t->rates.write_bytes),
                            mfs_show_duration(t->rates.p50_ms / 1e3, p50),
                            mfs_show_duration(t->rates.p99_ms / 1e3, p99),
                            (unsigned long long)t->under_way, (unsigned long long)t->waiting);
    if (rc == 0)
        rc = put_ops(t, to);
    if (rc == 0)
        rc = put_nodes(t, to);
    if (rc == 0 && !t->samples)
        return mfs_buf_printf(to, "\nfiles and processes: only for root and the mount's owner\n");
    if (rc == 0)
        rc = put_hot("file", t->file, t->nfiles, to);
    if (rc == 0)
        rc = put_hot("directory", t->dir, t->ndirs, to);
    return rc < 0 ? rc : put_hot("process", t->program, t->nprograms, to);
}

int mfs_mount_top_json(const struct mfs_mount_top *t, struct mfs_buf *to)
{
    return mfs_show_json(&top_schema, t, false, to);
}
