/* What clients have told of their figures, and who is told of it. */
#include <stdlib.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "lm/mount/clients_impl.h"

void mfs_clients_on_metrics(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    struct mfs_client_entry *e = mfs_conn_data(conn);
    struct mfs_metric_snapshot figures;

    (void)arg;
    if (!e) {
        mfs_conn_fail(conn, id, -EPROTO, "client_hello comes first");
        return;
    }
    if (mfs_metric_snapshot_copy(&figures, body)) {
        mfs_conn_fail(conn, id, -ENOMEM, "out of memory");
        return;
    }
    mfs_metric_snapshot_quantiles(&figures);
    mfs_metric_snapshot_free(&e->figures);
    e->figures = figures;
    e->figures_at = mfs_clock_mono();
    mfs_conn_reply(conn, MFS_MSG_METRICS, id, &(struct mfs_msg_empty){0});
}

void mfs_clients_on_hot(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    struct mfs_client_entry *e = mfs_conn_data(conn);
    struct mfs_hot hot;

    (void)arg;
    if (e && !mfs_hot_copy(&hot, body)) {
        mfs_schema_clear(&mfs_hot_schema, &e->hot);
        e->hot = hot;
    }
    mfs_conn_reply(conn, MFS_MSG_HOT, id, &(struct mfs_msg_empty){0});
}

/* The figures stay the entry's. */
static void put_source(const struct mfs_client_entry *e, struct mfs_stats_source *s)
{
    *s = (struct mfs_stats_source){.program = "client",
                                   .pid = (uint32_t)e->info.proc.pid,
                                   .figures = e->figures,
                                   .age_ms =
                                       (uint64_t)(mfs_clock_mono() - e->figures_at) / MFS_MSEC};
    mfs_text_copy(s->mount, sizeof s->mount, e->info.mount);
}

void mfs_clients_on_stats(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    struct mfs_stats_source own = {.program = "lm", .pid = (uint32_t)getpid()};
    struct mfs_clients *c = arg;
    struct mfs_stats s = {0};
    uint32_t n = 1;

    (void)body;
    for (const struct mfs_client_entry *e = c->entries; e; e = e->next)
        n++;
    s.source = calloc(n, sizeof *s.source);
    if (!s.source || (c->metrics && mfs_metrics_read(c->metrics, &own.figures))) {
        free(s.source);
        mfs_conn_fail(conn, id, -ENOMEM, "out of memory");
        return;
    }
    s.source[s.nsources++] = own;
    for (const struct mfs_client_entry *e = c->entries; e; e = e->next)
        if (e->figures_at)
            put_source(e, &s.source[s.nsources++]);
    mfs_conn_reply(conn, MFS_MSG_STATS, id, &s);
    mfs_metric_snapshot_free(&own.figures);
    free(s.source);
}

void mfs_clients_each(const struct mfs_clients *c, mfs_clients_see *see, void *arg)
{
    int64_t now = mfs_clock_mono();

    for (const struct mfs_client_entry *e = c->entries; e; e = e->next)
        see(arg, &e->info, e->figures_at ? &e->figures : NULL, &e->hot, now - e->figures_at);
}
