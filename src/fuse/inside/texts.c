#include "fuse/inside/texts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "fuse/inside/describe.h"
#include "fuse/inside/inside_impl.h"
#include "proto/messages.h"
#include "show/json.h"
#include "store/store.h"
#include "trace/nodes.h"

#define OPEN_AFTER (10 * MFS_MSEC) /* one that has not ended is told of when it is so old */
#define OPEN_MOST  1024U

/* ---- stats ----------------------------------------------------------------------------------- */

static int put_figure(const struct mfs_metric_sample *f, struct mfs_buf *to)
{
    char name[MFS_METRIC_NAME_MAX + MFS_METRIC_LABELS_MAX + 2];

    snprintf(name, sizeof name, f->labels[0] ? "%s{%s}" : "%s%s", f->name, f->labels);
    if (f->kind != MFS_METRIC_HISTOGRAM)
        return mfs_buf_printf(to, "%-72s %12" PRIu64 "\n", name, f->value);
    return mfs_buf_printf(to, "%-72s %12" PRIu64 " %11.6f %11.6f %11.6f\n", name, f->value, f->p50,
                          f->p90, f->p99);
}

static void count_one(void *arg, const struct mfs_request *r)
{
    (void)r;
    ++*(unsigned *)arg;
}

/* What the kernel has waiting or under way, but for the request that asks; -1: it does not tell. */
static int64_t in_kernel(struct mfs_fuse *m)
{
    char path[96];
    struct mfs_buf b;
    int64_t n = -1;

    snprintf(path, sizeof path, "/sys/fs/fuse/connections/%u/waiting",
             minor(atomic_load(&m->device)));
    mfs_buf_init(&b);
    if (mfs_file_read(path, 64, &b) == 0 && mfs_buf_printf(&b, "%s", "") >= 0 &&
        mfs_buf_len(&b) > 0)
        n = strtoll(mfs_buf_data(&b), NULL, 10) - 1;
    mfs_buf_fini(&b);
    return n;
}

/* Two gauges that no registry has, at the end. */
static int add_requests(struct mfs_fuse *m, struct mfs_metric_snapshot *s)
{
    struct mfs_metric_sample *more = realloc(s->sample, (s->n + 2) * sizeof *more);
    unsigned under_way = 0;
    int64_t kernel = in_kernel(m);

    if (more == NULL)
        return -ENOMEM;
    s->sample = more;
    mfs_request_each(count_one, &under_way);
    more[s->n++] = (struct mfs_metric_sample){.name = "memefs_requests_under_way",
                                              .help = "Requests that the client serves.",
                                              .kind = MFS_METRIC_GAUGE,
                                              .value = under_way};
    if (kernel >= 0)
        more[s->n++] = (struct mfs_metric_sample){
            .name = "memefs_requests_waiting",
            .help = "Requests that wait in the kernel or for a worker.",
            .kind = MFS_METRIC_GAUGE,
            .value = kernel > under_way ? (uint64_t)(kernel - under_way) : 0};
    return 0;
}

static bool is_shown(const struct mfs_metric_sample *f)
{
    static const char gauges[] = "memefs_requests_";

    return f->value > 0 || strncmp(f->name, gauges, sizeof gauges - 1) == 0;
}

static int stats_text(const struct mfs_metric_snapshot *s, struct mfs_buf *to)
{
    int rc =
        mfs_buf_printf(to, "%-72s %12s %11s %11s %11s\n", "", "count", "p50 s", "p90 s", "p99 s");

    for (uint32_t i = 0; i < s->n && rc == 0; i++)
        if (is_shown(&s->sample[i]))
            rc = put_figure(&s->sample[i], to);
    return rc;
}

static int stats_json(struct mfs_fuse *m, struct mfs_metric_snapshot *s, struct mfs_buf *to)
{
    struct mfs_stats_source source = {.pid = (uint32_t)getpid(), .figures = *s};
    struct mfs_stats stats = {.nsources = 1, .source = &source};
    int rc;

    mfs_text_copy(source.program, sizeof source.program, "client");
    mfs_text_copy(source.mount, sizeof source.mount, m->inside->opts.path);
    rc = mfs_schema_encode(&mfs_stats_schema, &stats, true, to);
    return rc < 0 ? rc : mfs_buf_append(to, "\n", 1);
}

int mfs_text_of_stats(struct mfs_fuse *m, bool json, struct mfs_buf *to)
{
    struct mfs_metric_snapshot s;
    int rc = mfs_metrics_read(m->metrics, &s);

    if (rc < 0)
        return rc;
    rc = add_requests(m, &s);
    if (rc == 0)
        rc = json ? stats_json(m, &s, to) : stats_text(&s, to);
    mfs_metric_snapshot_free(&s);
    return rc;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static double ms(int64_t ns)
{
    return (double)ns / (double)MFS_MSEC;
}

static struct mfs_trace_node *node_of(struct mfs_trace_nodes *nodes, uint32_t number)
{
    uint32_t i = 0;

    while (i < nodes->n && nodes->node[i].node != number)
        i++;
    if (i == nodes->n)
        nodes->node[nodes->n++] = (struct mfs_trace_node){.node = number};
    return &nodes->node[i];
}

static void add_part(struct mfs_trace_node *n, const struct mfs_store_part *p, uint32_t part)
{
    n->partitions++;
    n->round_trips += p->trips;
    n->ms += ms(p->ns);
    if (p->least > 0 && (n->shortest_ms <= 0 || ms(p->least) < n->shortest_ms))
        n->shortest_ms = ms(p->least);
    n->under_way += p->waiting;
    if (ms(p->silent) > n->silent_ms) {
        n->silent_ms = ms(p->silent);
        n->silent_partition = part;
    }
    n->unreachable += p->down > 0;
    n->moving += p->fenced;
    if (p->full > 0 && (n->full_s_ago <= 0 || ms(p->full) / 1e3 < n->full_s_ago))
        n->full_s_ago = ms(p->full) / 1e3;
}

static int by_number(const void *a, const void *b)
{
    const struct mfs_trace_node *x = a, *y = b;

    return (x->node > y->node) - (x->node < y->node);
}

int mfs_text_of_nodes(struct mfs_fuse *m, bool json, struct mfs_buf *to)
{
    struct mfs_store *store = mfs_vfs_store(m->vfs);
    uint32_t nparts = mfs_store_nparts(store);
    struct mfs_store_part *parts = calloc(nparts, sizeof *parts);
    struct mfs_trace_nodes nodes = {.node = calloc(nparts, sizeof *nodes.node)};
    int rc = -ENOMEM;

    if (parts != NULL && nodes.node != NULL) {
        mfs_store_parts(store, parts);
        for (uint32_t i = 0; i < nparts; i++)
            add_part(node_of(&nodes, parts[i].node), &parts[i], i);
        qsort(nodes.node, nodes.n, sizeof *nodes.node, by_number);
        rc = json ? mfs_trace_nodes_json(&nodes, to) : mfs_trace_nodes_text(&nodes, to);
    }
    mfs_trace_nodes_free(&nodes);
    free(parts);
    return rc;
}

/* ---- hot ------------------------------------------------------------------------------------- */

int mfs_text_of_hot(struct mfs_fuse *m, bool json, struct mfs_buf *to)
{
    int64_t now = mfs_clock_mono();
    struct mfs_hot hot;
    int rc = mfs_hot_take(m->inside->hot, now, MFS_HOT_MOST, &hot);

    if (rc < 0)
        return rc;
    mfs_hot_watched(m->inside->hot, now);
    rc = json ? mfs_show_json(&mfs_hot_schema, &hot, true, to) : mfs_hot_text(&hot, to);
    mfs_schema_clear(&mfs_hot_schema, &hot);
    return rc;
}

/* ---- slow ------------------------------------------------------------------------------------ */

struct listing {
    struct mfs_fuse *m;
    bool json;
    struct mfs_buf *to;
    int rc;
    int64_t now;
    struct mfs_described *open; /* OPEN_MOST at most */
    unsigned n;
};

static void put_line(void *arg, const struct mfs_trace_line *line)
{
    struct listing *l = arg;

    if (l->rc == 0)
        l->rc = l->json ? mfs_trace_json(line, l->to) : mfs_trace_text(line, l->to);
}

static void note_open(void *arg, const struct mfs_request *r)
{
    struct listing *l = arg;

    if (l->n < OPEN_MOST && l->now - r->since >= OPEN_AFTER)
        mfs_describe_open(l->m, r, l->now, &l->open[l->n++]);
}

/* Those that have ended, then those that have not. */
int mfs_text_of_slow(struct mfs_fuse *m, bool json, struct mfs_buf *to)
{
    struct listing l = {.m = m, .json = json, .to = to, .now = mfs_clock_mono()};

    l.open = calloc(OPEN_MOST, sizeof *l.open);
    if (l.open == NULL)
        return -ENOMEM;
    mfs_request_each(note_open, &l);
    mfs_slow_each(m->inside->slow, put_line, &l);
    for (unsigned i = 0; i < l.n; i++) {
        mfs_describe_names(m->inside->names, &l.open[i]);
        put_line(&l, &l.open[i].line);
    }
    free(l.open);
    return l.rc;
}
