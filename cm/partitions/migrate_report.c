/* What there is to tell about a migration. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cm/state/events.h"
#include "cm/partitions/migrate_impl.h"

#define SAMPLE_EVERY (500 * MFS_MSEC)

static uint64_t arrived(const struct mfs_move *m)
{
    return m->moved || m->arrived > m->bytes ? m->bytes : m->arrived;
}

uint64_t mfs_migrate_arrived(const struct mfs_migrate *g)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < g->n; i++)
        if (g->one[i]->listed)
            bytes += arrived(&g->one[i]->move);
    return bytes;
}

void mfs_migrate_sample(struct mfs_migrate *g, int64_t now)
{
    struct mfs_migrate_sample *last =
        &g->sample[(g->nsamples + MFS_MIGRATE_SAMPLES - 1) % MFS_MIGRATE_SAMPLES];

    if (g->nsamples && now - last->at < SAMPLE_EVERY)
        return;
    g->sample[g->nsamples++ % MFS_MIGRATE_SAMPLES] =
        (struct mfs_migrate_sample){now, mfs_migrate_arrived(g)};
}

/* Bytes/s between the oldest sample and the newest. */
static double rate(const struct mfs_migrate *g)
{
    const struct mfs_migrate_sample *old, *new;

    if (g->nsamples < 2)
        return 0;
    old = &g->sample[g->nsamples > MFS_MIGRATE_SAMPLES ? g->nsamples % MFS_MIGRATE_SAMPLES : 0];
    new = &g->sample[(g->nsamples - 1) % MFS_MIGRATE_SAMPLES];
    if (new->at <= old->at || new->bytes <= old->bytes)
        return 0;
    return (double)(new->bytes - old->bytes) * (double)MFS_SEC / (double)(new->at - old->at);
}

void mfs_migrate_progress(const struct mfs_cm *cm, struct mfs_progress *p)
{
    const struct mfs_migrate *g = cm->migrate;

    *p = (struct mfs_progress){0};
    if (!g || !g->listed)
        return;
    for (uint32_t i = 0; i < g->n; i++) {
        const struct mfs_move *m = &g->one[i]->move;

        if (!g->one[i]->listed)
            continue;
        p->partitions_total++;
        p->partitions += m->settled;
        p->bytes_total += m->bytes;
        p->bytes += arrived(m);
    }
    p->rate = rate(g);
    if (p->rate > 0)
        p->eta_ms = 1000 * (double)(p->bytes_total - p->bytes) / p->rate;
    snprintf(p->what, sizeof p->what, "moving %u partitions", p->partitions_total);
}

int mfs_migrate_status(const struct mfs_cm *cm, struct mfs_status *s)
{
    const struct mfs_migrate *g = cm->migrate;

    s->nmoves = 0;
    s->move = NULL;
    if (!g || !g->n)
        return 0;
    s->move = calloc(g->n, sizeof *s->move);
    if (!s->move)
        return -ENOMEM;
    for (uint32_t i = 0; i < g->n; i++) {
        const struct mfs_move *m = &g->one[i]->move;
        struct mfs_status_move *out = &s->move[s->nmoves];

        if (m->step == MFS_AT_OVER)
            continue;
        *out = (struct mfs_status_move){.partition = m->part,
                                        .from = m->from,
                                        .to = m->to,
                                        .bytes = arrived(m),
                                        .bytes_total = m->bytes};
        mfs_text_copy(out->step, sizeof out->step, mfs_move_shown(m));
        s->nmoves++;
    }
    return 0;
}

static void add_up(const struct mfs_move *m, struct mfs_migrate_result *r, struct mfs_err *err)
{
    r->n++;
    r->blocked_us_total += m->blocked_us;
    if (m->blocked_us > r->blocked_us_max)
        r->blocked_us_max = m->blocked_us;
    if (!m->moved) {
        if (!r->undone++)
            mfs_err_set(err, m->why.code ? m->why.code : -EIO, "partition %u: %s", m->part,
                        m->why.msg);
        return;
    }
    r->moved++;
    r->bytes += m->bytes;
}

void mfs_migrate_sum(const struct mfs_migrate *g, struct mfs_migrate_result *r, struct mfs_err *err)
{
    double seconds = (double)(mfs_clock_mono() - g->began) / (double)MFS_SEC;

    *r = (struct mfs_migrate_result){0};
    *err = (struct mfs_err){0};
    for (uint32_t i = 0; i < g->n; i++)
        if (g->one[i]->listed)
            add_up(&g->one[i]->move, r, err);
    if (r->undone)
        mfs_err_prefix(err, "%u of %u partitions could not be moved", r->undone, r->n);
    mfs_event_add(
        g->cm->paths->events, "cm", "migrated",
        "%u of %u partitions, %s in %.2f s (%s/s), blocked at most %.1f ms, in all %.1f ms",
        r->moved, r->n, MFS_TEXT_BYTES(r->bytes), seconds,
        MFS_TEXT_BYTES(seconds > 0 ? (uint64_t)((double)r->bytes / seconds) : 0),
        (double)r->blocked_us_max / 1e3, (double)r->blocked_us_total / 1e3);
}
