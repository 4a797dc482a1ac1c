#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/shown.h"
#include "trace/profile_impl.h"

#define TOP 8U /* lines of each table */

static int by_time(struct mfs_profile_sum *a, struct mfs_profile_sum *b)
{
    if (a->t.all != b->t.all)
        return a->t.all < b->t.all ? 1 : -1;
    return a->requests < b->requests ? 1 : a->requests > b->requests ? -1 : strcmp(a->key, b->key);
}

/* The way to the nodes and back, of the time of round trips: the shortest one to a node is taken to
 * be that. */
static double network_ms(const struct mfs_profile *p)
{
    double all = 0, way = 0;

    for (uint32_t i = 0; i < p->nnodes; i++) {
        all += p->node[i].ms;
        way += p->node[i].least_ms * (double)p->node[i].trips;
    }
    return all > 0 ? p->all.t.phase[MFS_PHASE_PARTITION] * way / all : 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

static int put_share(const struct mfs_profile *p, const char *name, double ms, const char *more,
                     struct mfs_buf *to)
{
    if (ms <= 0)
        return 0;
    return mfs_buf_printf(to, "  %-28s %12.1f ms %5.1f %%%s\n", name, ms,
                          p->all.t.all > 0 ? ms * 100 / p->all.t.all : 0, more);
}

static int put_phases(const struct mfs_profile *p, struct mfs_buf *to)
{
    double way = network_ms(p);
    int rc = mfs_buf_printf(to, "\nwhere the time went\n");

    if (rc == 0)
        rc = put_share(p, "client", p->all.t.client, "", to);
    for (unsigned i = 0; i < MFS_PHASES && rc == 0; i++) {
        double ms = p->all.t.phase[i];

        if (i != MFS_PHASE_PARTITION) {
            rc = put_share(p, mfs_phase_name(i), ms, "", to);
            continue;
        }
        rc = put_share(p, "round trips: network", way, "  (inferred)", to);
        if (rc == 0)
            rc = put_share(p, "round trips: the rest", ms - way, "  (inferred)", to);
    }
    return rc;
}

static int put_nodes(const struct mfs_profile *p, struct mfs_buf *to)
{
    int rc = 0;

    if (p->nnodes > 0)
        rc = mfs_buf_printf(to, "\n%-10s %12s %14s %10s %12s\n", "node", "round trips", "ms",
                            "mean ms", "shortest ms");
    for (uint32_t i = 0; i < p->nnodes && rc == 0; i++) {
        const struct mfs_profile_node *n = &p->node[i];

        if (n->trips > 0)
            rc = mfs_buf_printf(to, "%-10u %12" PRIu64 " %14.1f %10.3f %12.3f\n", n->node, n->trips,
                                n->ms, n->ms / (double)n->trips, n->least_ms);
    }
    return rc;
}

static int put_sum(const struct mfs_profile_sum *s, struct mfs_buf *to)
{
    int rc =
        mfs_buf_printf(to, "%10" PRIu64 " %8" PRIu64 " %12.1f %10.3f %14" PRIu64 "  ", s->requests,
                       s->errors, s->t.all, s->t.all / (double)s->requests, s->bytes);

    if (rc == 0)
        rc = s->key[0] != '\0' ? mfs_shown_shell(to, s->key) : mfs_buf_append(to, "?", 1);
    return rc < 0 ? rc : mfs_buf_append(to, "\n", 1);
}

static int put_table(struct mfs_profile_sum **table, const char *title, struct mfs_buf *to)
{
    struct mfs_profile_sum *s;
    unsigned n = 0;
    int rc;

    if (*table == NULL)
        return 0;
    HASH_SRT(hh, *table, by_time);
    rc = mfs_buf_printf(to, "\n%10s %8s %12s %10s %14s  %s\n", "requests", "errors", "ms",
                        "mean ms", "bytes", title);
    for (s = *table; s != NULL && n++ < TOP && rc == 0; s = s->hh.next)
        rc = put_sum(s, to);
    if (rc == 0 && HASH_COUNT(*table) > TOP)
        rc = mfs_buf_printf(to, "%10s %u more\n", "…", HASH_COUNT(*table) - TOP);
    return rc;
}

static int put_head(const struct mfs_profile *p, double seconds, struct mfs_buf *to)
{
    int rc = mfs_buf_printf(to, "%.1f s below ", seconds);

    if (rc == 0)
        rc = mfs_shown_shell(to, p->below);
    if (rc == 0)
        rc =
            mfs_buf_printf(to,
                           ": %" PRIu64 " requests, %" PRIu64 " with errors, %" PRIu64
                           " not ended; %.1f ms together, %" PRIu64 " bytes\n",
                           p->all.requests, p->all.errors, p->all.open, p->all.t.all, p->all.bytes);
    if (rc == 0 && p->lost > 0)
        rc = mfs_buf_printf(to, "%" PRIu64 " more were missed, as they came too fast\n", p->lost);
    return rc;
}

int mfs_profile_text(struct mfs_profile *p, double seconds, struct mfs_buf *to)
{
    const struct {
        struct mfs_profile_sum **table;
        const char *title;
    } tables[] = {{&p->op, "operation"},
                  {&p->process, "process"},
                  {&p->path, "path"},
                  {&p->dir, "directory"},
                  {&p->missing, "directory, of look-ups of names that do not exist"},
                  {&p->lock, "file, of waits for locks"}};
    int rc = put_head(p, seconds, to);

    if (rc == 0 && p->all.requests > 0)
        rc = put_phases(p, to);
    if (rc == 0)
        rc = put_nodes(p, to);
    for (unsigned i = 0; i < sizeof tables / sizeof *tables && rc == 0; i++)
        rc = put_table(tables[i].table, tables[i].title, to);
    if (rc == 0)
        rc = mfs_buf_append(to, "\n", 1);
    if (rc == 0)
        rc = mfs_profile_sentence(p, seconds, to);
    return rc < 0 ? rc : mfs_buf_append(to, "\n", 1);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static int json_times(const struct mfs_profile_times *t, struct mfs_buf *to)
{
    int rc = mfs_buf_printf(to, "\"ms\": %.3f, \"client_ms\": %.3f", t->all, t->client);

    for (unsigned i = 0; i < MFS_PHASES && rc == 0; i++)
        rc = mfs_buf_printf(to, ", \"%s_ms\": %.3f", mfs_phase_name(i), t->phase[i]);
    return rc;
}

static int json_sum(const struct mfs_profile_sum *s, struct mfs_buf *to)
{
    int rc = mfs_buf_printf(to, "{\"name\": ");

    if (rc == 0)
        rc = mfs_shown_json(to, s->key);
    if (rc == 0)
        rc = mfs_buf_printf(to,
                            ", \"requests\": %" PRIu64 ", \"errors\": %" PRIu64
                            ", \"open\": %" PRIu64 ", \"bytes\": %" PRIu64 ", ",
                            s->requests, s->errors, s->open, s->bytes);
    if (rc == 0)
        rc = json_times(&s->t, to);
    if (rc == 0 && s->holder_pid != 0) {
        rc = mfs_buf_printf(to, ", \"holder_pid\": %u, \"holder_elsewhere\": %s, \"holder\": ",
                            s->holder_pid, s->elsewhere ? "true" : "false");
        if (rc == 0)
            rc = mfs_shown_json(to, s->holder);
    }
    return rc < 0 ? rc : mfs_buf_append(to, "}", 1);
}

static int json_table(struct mfs_profile_sum **table, const char *name, struct mfs_buf *to)
{
    struct mfs_profile_sum *s;
    unsigned n = 0;
    int rc = mfs_buf_printf(to, ",\n  \"%s\": [", name);

    if (*table != NULL)
        HASH_SRT(hh, *table, by_time);
    for (s = *table; s != NULL && n < TOP && rc == 0; s = s->hh.next) {
        rc = mfs_buf_printf(to, "%s\n    ", n++ > 0 ? "," : "");
        if (rc == 0)
            rc = json_sum(s, to);
    }
    return rc < 0 ? rc : mfs_buf_append(to, "]", 1);
}

static int json_nodes(const struct mfs_profile *p, struct mfs_buf *to)
{
    int rc = mfs_buf_printf(to, ",\n  \"nodes\": [");

    for (uint32_t i = 0; i < p->nnodes && rc == 0; i++)
        rc = mfs_buf_printf(to,
                            "%s\n    {\"node\": %u, \"trips\": %" PRIu64
                            ", \"ms\": %.3f, \"least_ms\": %.3f, \"hanging\": %" PRIu64
                            ", \"hanging_ms\": %.3f, \"partition\": %u, \"full\": %" PRIu64 "}",
                            i > 0 ? "," : "", p->node[i].node, p->node[i].trips, p->node[i].ms,
                            p->node[i].least_ms, p->node[i].hanging, p->node[i].hanging_ms,
                            p->node[i].partition, p->node[i].full);
    return rc < 0 ? rc : mfs_buf_append(to, "]", 1);
}

static int json_sentence(struct mfs_profile *p, double seconds, struct mfs_buf *to)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_profile_sentence(p, seconds, &b);
    if (rc == 0)
        rc = mfs_buf_append(&b, "", 1);
    if (rc == 0)
        rc = mfs_buf_printf(to, ",\n  \"sentence\": ");
    if (rc == 0)
        rc = mfs_shown_json(to, mfs_buf_data(&b));
    mfs_buf_fini(&b);
    return rc < 0 ? rc : mfs_buf_append(to, "\n}\n", 3);
}

int mfs_profile_json(struct mfs_profile *p, double seconds, struct mfs_buf *to)
{
    const struct {
        struct mfs_profile_sum **table;
        const char *name;
    } tables[] = {{&p->op, "operations"},   {&p->process, "processes"}, {&p->path, "paths"},
                  {&p->dir, "directories"}, {&p->missing, "missing"},   {&p->lock, "locks"}};
    int rc = mfs_buf_printf(to, "{\n  \"below\": ");

    if (rc == 0)
        rc = mfs_shown_json(to, p->below);
    if (rc == 0)
        rc = mfs_buf_printf(
            to,
            ",\n  \"seconds\": %.3f, \"requests\": %" PRIu64 ", \"errors\": %" PRIu64
            ", \"open\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"lost\": %" PRIu64 ",\n  ",
            seconds, p->all.requests, p->all.errors, p->all.open, p->all.bytes, p->lost);
    if (rc == 0)
        rc = json_times(&p->all.t, to);
    if (rc == 0)
        rc = mfs_buf_printf(to, ", \"network_ms\": %.3f", network_ms(p));
    if (rc == 0)
        rc = json_nodes(p, to);
    for (unsigned i = 0; i < sizeof tables / sizeof *tables && rc == 0; i++)
        rc = json_table(tables[i].table, tables[i].name, to);
    return rc < 0 ? rc : json_sentence(p, seconds, to);
}
