#include "cm/cli/top/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cm/ask/client.h"
#include "cm/state/event_reader.h"

#define TIME_LIMIT (5 * MFS_SEC)
#define STEP       (2100 * MFS_MSEC) /* clients tell every 2 s, and cm asks each at most so often: */
#define STEPS      3                 /* what is new then may be shown after that many */

struct mfs_top_sampler {
    struct mfs_paths paths;
    struct mfs_event_reader *events; /* NULL: none yet */
    struct mfs_event last[MFS_TOP_EVENTS];
    uint64_t nlast; /* events seen; the last of them are in the ring */
    struct mfs_top_sample before;
};

/* ---- events ---------------------------------------------------------------------------------- */

static void read_events(struct mfs_top_sampler *t)
{
    struct mfs_event e;

    if (!t->events && mfs_event_reader_open(&t->paths, &t->events))
        return;
    while (mfs_event_reader_next(t->events, &e) > 0)
        t->last[t->nlast++ % MFS_TOP_EVENTS] = e;
}

static void give_events(const struct mfs_top_sampler *t, struct mfs_top_sample *s)
{
    uint64_t first = t->nlast > MFS_TOP_EVENTS ? t->nlast - MFS_TOP_EVENTS : 0;

    for (uint64_t i = first; i < t->nlast; i++)
        s->event[s->nevents++] = t->last[i % MFS_TOP_EVENTS];
}

/* ---- samples --------------------------------------------------------------------------------- */

static int ask(const struct mfs_paths *p, struct mfs_top_sample *s,
               const struct mfs_top_sample *before, struct mfs_err *err)
{
    struct mfs_mounts mounts = {0};
    struct mfs_status status;
    struct mfs_err none;
    int64_t when; /* an age is of then: what the answer takes is not to look like news */
    int rc = mfs_client_call(p, MFS_MSG_STATUS, NULL, TIME_LIMIT, &status, err);

    if (rc)
        return rc;
    when = mfs_clock_mono();
    if (mfs_client_call(p, MFS_MSG_CLIENTS, NULL, TIME_LIMIT, &mounts, &none))
        mounts = (struct mfs_mounts){0}; /* of a former cm, say: the rest is there */
    rc = mfs_top_make(s, when, &status, &mounts, before);
    mfs_schema_clear(&mfs_mounts_schema, &mounts);
    return rc ? mfs_err_set(err, rc, "out of memory") : 0;
}

static bool any_event(void *arg, const struct mfs_event *e)
{
    (void)arg;
    (void)e;
    return true;
}

int mfs_top_sample_once(const struct mfs_paths *p, struct mfs_top_sample *s, struct mfs_err *err)
{
    bool fresh = false;
    int rc = ask(p, s, NULL, err), n;

    for (int step = 0; !rc && !fresh && (s->nmoves || s->nmounts) && step < STEPS; step++) {
        struct mfs_top_sample next;

        mfs_clock_sleep(STEP);
        rc = ask(p, &next, s, err);
        fresh = !rc && (next.ops_at != s->ops_at || !next.ops_at);
        mfs_top_clear(s);
        if (!rc)
            *s = next;
    }
    if (rc)
        return rc;
    n = mfs_event_last(p, any_event, NULL, s->event, MFS_TOP_EVENTS);
    s->nevents = n > 0 ? (uint32_t)n : 0; /* none where cm is elsewhere */
    return 0;
}

/* What the next one is compared with. */
static void keep_rates(struct mfs_top_sampler *t, const struct mfs_top_sample *s)
{
    mfs_top_clear(&t->before);
    t->before.move = calloc(s->nmoves + 1, sizeof *s->move);
    t->before.mount = calloc(s->nmounts + 1, sizeof *s->mount);
    if (!t->before.move || !t->before.mount)
        return;
    memcpy(t->before.move, s->move, s->nmoves * sizeof *s->move);
    memcpy(t->before.mount, s->mount, s->nmounts * sizeof *s->mount);
    t->before.op = calloc(s->nops + 1, sizeof *s->op);
    if (t->before.op) {
        memcpy(t->before.op, s->op, s->nops * sizeof *s->op);
        t->before.nops = s->nops;
    }
    t->before.ops_at = s->ops_at;
    t->before.nmoves = s->nmoves;
    t->before.nmounts = s->nmounts;
    t->before.when = s->when;
}

void *mfs_top_sampler_take(void *sampler, struct mfs_err *err)
{
    struct mfs_top_sampler *t = sampler;
    struct mfs_top_sample *s = calloc(1, sizeof *s);

    read_events(t);
    if (!s) {
        mfs_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    if (ask(&t->paths, s, &t->before, err)) {
        free(s);
        return NULL;
    }
    give_events(t, s);
    keep_rates(t, s);
    return s;
}

void mfs_top_sample_free(void *sample)
{
    if (sample)
        mfs_top_clear(sample);
    free(sample);
}

struct mfs_top_sampler *mfs_top_sampler_create(const struct mfs_paths *p)
{
    struct mfs_top_sampler *t = calloc(1, sizeof *t);

    if (t)
        t->paths = *p;
    return t;
}

void mfs_top_sampler_destroy(void *sampler)
{
    struct mfs_top_sampler *t = sampler;

    mfs_event_reader_close(t->events);
    mfs_top_clear(&t->before);
    free(t);
}
