/* Flushing a file: what is dirty goes to the stripes, then a commit makes it known.
 *
 *   small file      everything dirty is one chunk of stripe 0, a few KiB: the commit carries it
 *   little          the flushing thread sends it itself, all stripes in one round trip
 *   much            the senders get it, the flushing thread works along on this file's chunks
 *
 * Only what was written before the call is waited for: chunks with an id below the next one at that
 * time. Commits of a file come one after the other. One that a sender makes behind a writer's back
 * only tells an end below which everything is stored, so that a reader that follows the file from
 * another mount never sees zeros where data are on their way. */
#include "data/writeback/writeback_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/phases.h"
#include "base/threads/thread.h"
#include "cluster/placement.h"

#define SMALL_BYTES 65536U
#define SMALL_PARTS 16U

#define RETRY_FIRST (10 * MFS_MSEC)
#define RETRY_LAST  (200 * MFS_MSEC)

static_assert(RETRY_FIRST < RETRY_LAST, "pauses grow");

/* All static functions of this file are called with d->lock held; those that wait or talk to a
 * partition drop it meanwhile. */

void mfs_dirty_fail(struct mfs_dirty *d, int rc)
{
    if (d->errors == d->errors_reported)
        mfs_error("data", "file %llx: written data are lost: %s", (unsigned long long)d->ino,
                  strerror(-rc));
    mfs_metric_add(d->wb->metrics, MFS_WB_FAILURES, 0, 1);
    d->write_error = d->write_error ? d->write_error : rc;
    if (d->errors++ == d->errors_reported)
        d->flush_error = rc;
}

/* --- commits --- */

static void wait_commit_turn(struct mfs_dirty *d)
{
    if (!d->committing.any)
        return;
    mfs_phase_wait(MFS_PHASE_DATA);
    while (d->committing.any)
        mfs_cond_wait(&d->changed, &d->lock, MFS_SEC);
    mfs_phase_over();
}

/* Calls back with d->committing set, to which only this thread and readers have a right. */
static int call_commit(struct mfs_dirty *d, const struct mfs_dirty_commit *c)
{
    int rc;

    pthread_mutex_unlock(&d->lock);
    rc = d->commit(d->arg, c);
    pthread_mutex_lock(&d->lock);
    return rc;
}

/* Tries again while the home partition is full, as long as a stripe would be. */
static int call_commit_retrying(struct mfs_dirty *d, const struct mfs_dirty_commit *c)
{
    int64_t since = mfs_clock_mono(), pause = RETRY_FIRST;
    uint32_t home = mfs_placement_home(d->ino);
    int rc;

    for (;;) {
        rc = call_commit(d, c);
        if (rc != -ENOSPC || mfs_wb_full_since(d->wb, home, since))
            return rc;
        if (mfs_clock_mono() - since >= d->wb->opts.full_wait) {
            mfs_wb_declare_full(d->wb, home);
            return rc;
        }
        pthread_mutex_unlock(&d->lock);
        mfs_phase_wait(MFS_PHASE_ROOM);
        mfs_clock_sleep(pause);
        mfs_phase_over();
        pthread_mutex_lock(&d->lock);
        pause = pause * 2 < RETRY_LAST ? pause * 2 : RETRY_LAST;
    }
}

static void commit_ended(struct mfs_dirty *d)
{
    d->committing.any = false;
    mfs_ranges_fini(&d->committing.ranges);
    pthread_cond_broadcast(&d->changed);
}

/* All that is stored is being committed from now on. */
static struct mfs_dirty_commit begin_commit(struct mfs_dirty *d)
{
    struct mfs_stored *s = &d->stored, *now = &d->committing;

    mfs_ranges_move(&now->ranges, &s->ranges);
    now->any = true;
    now->alloc = s->alloc;
    now->mtime = s->mtime;
    now->drops = s->drops;
    s->any = s->fresh = s->drops = false;
    s->alloc = 0;
    return (struct mfs_dirty_commit){.alloc = now->alloc, .mtime = now->mtime, .drops = now->drops};
}

/* d->committing's ranges are what the commit tells. */
static void tell_ranges(const struct mfs_dirty *d, struct mfs_dirty_commit *c)
{
    c->end = mfs_ranges_end(&d->committing.ranges);
    c->stored = d->committing.ranges.v;
    c->nstored = d->committing.ranges.n;
}

/* What a commit took and did not make known is to be committed again. */
static int take_back(struct mfs_dirty *d)
{
    struct mfs_stored *s = &d->stored, *old = &d->committing;
    int rc = 0;

    for (uint32_t i = 0; i < old->ranges.n && !rc; i++)
        rc = mfs_ranges_add(&s->ranges, old->ranges.v[i].lo, old->ranges.v[i].hi);
    if (!old->ranges.n)
        return rc;
    if (!s->any || mfs_timespec_cmp(old->mtime, s->mtime) > 0)
        s->mtime = old->mtime;
    s->any = s->fresh = true;
    s->drops |= old->drops;
    mfs_wb_commit_at(d, mfs_clock_mono() + d->wb->opts.max_age);
    return rc;
}

/* When the home is full, what the commit was to name is in the stripes and may yet be named; with
 * any other error it is lost. */
static int commit_failed(struct mfs_dirty *d, int rc)
{
    int lost = 0;

    d->stored.alloc += d->committing.alloc;
    if (rc == -ENOSPC)
        lost = take_back(d);
    return lost ? lost : rc;
}

static int commit_stored(struct mfs_dirty *d)
{
    struct mfs_dirty_commit c;
    int rc;

    wait_commit_turn(d);
    if (!d->stored.any)
        return 0;
    c = begin_commit(d);
    tell_ranges(d, &c);
    rc = call_commit_retrying(d, &c);
    if (rc)
        rc = commit_failed(d, rc);
    commit_ended(d);
    return rc;
}

/* The first byte that is dirty and not stored. */
static uint64_t first_dirty(const struct mfs_dirty *d)
{
    uint64_t first = UINT64_MAX;
    const struct mfs_chunk *c;

    TAILQ_FOREACH(c, &d->chunks, in_file)
    {
        uint64_t begin = (uint64_t)c->stripe * d->stripe_size;

        if (c->ranges.n && begin + c->ranges.v[0].lo < first)
            first = begin + c->ranges.v[0].lo;
    }
    return first;
}

/* What is stored at or beyond `limit` is left for a later commit; with UINT64_MAX nothing is. */
static int leave_beyond(struct mfs_dirty *d, uint64_t limit)
{
    struct mfs_ranges *now = &d->committing.ranges;
    int rc = 0;

    for (uint32_t i = mfs_ranges_behind(now, limit); i < now->n && !rc; i++) {
        uint64_t lo = now->v[i].lo > limit ? now->v[i].lo : limit;

        rc = mfs_ranges_add(&d->stored.ranges, lo, now->v[i].hi);
        d->stored.any = true;
        d->stored.mtime = d->committing.mtime;
        d->stored.drops |= d->committing.drops;
    }
    mfs_ranges_cut(now, limit);
    return rc;
}

static void commit_below(struct mfs_dirty *d, uint64_t limit)
{
    struct mfs_dirty_commit c = begin_commit(d);
    int rc = leave_beyond(d, limit);

    tell_ranges(d, &c);
    if (!rc)
        rc = call_commit(d, &c);
    if (rc)
        rc = commit_failed(d, rc);
    if (rc && rc != -ENOSPC)
        mfs_dirty_fail(d, rc);
    commit_ended(d);
}

void mfs_dirty_commit_behind(struct mfs_dirty *d)
{
    mfs_dirty_store_gathered(d, true);
    pthread_mutex_lock(&d->lock);
    if (!d->committing.any && !d->flushing && d->stored.fresh)
        commit_below(d, d->stored.ranges.n > MFS_WB_PLACES ? UINT64_MAX : first_dirty(d));
    pthread_mutex_unlock(&d->lock);
}

/* --- a small file --- */

static struct mfs_chunk *small_chunk(struct mfs_dirty *d)
{
    struct mfs_chunk *c = TAILQ_FIRST(&d->chunks);

    if (!c || TAILQ_NEXT(c, in_file) || c->stripe || c->in_flight || !c->ranges.n ||
        c->ranges.n > SMALL_PARTS || mfs_ranges_bytes(&c->ranges) > SMALL_BYTES)
        return NULL;
    return mfs_wb_take(c) ? c : NULL;
}

/* The chunk's ranges as parts of a commit of theirs and of what is stored already. The parts need
 * no telling: the call that stores them names them. */
static void plan_small(struct mfs_dirty *d, const struct mfs_chunk *c, struct mfs_dirty_part *parts,
                       struct mfs_dirty_commit *commit)
{
    uint64_t end = mfs_ranges_end(&c->ranges);
    bool more = d->stored.any;

    *commit = begin_commit(d);
    if (!more || mfs_timespec_cmp(c->mtime, commit->mtime) > 0)
        commit->mtime = d->committing.mtime = c->mtime;
    commit->drops = d->committing.drops |= c->drops;
    for (uint32_t i = 0; i < c->ranges.n; i++) {
        const struct mfs_range *r = &c->ranges.v[i];

        parts[i] = (struct mfs_dirty_part){(uint32_t)r->lo, (uint32_t)(r->hi - r->lo),
                                           c->mem + (r->lo - c->base)};
    }
    commit->parts = parts;
    commit->nparts = c->ranges.n;
    tell_ranges(d, commit);
    if (commit->end < end)
        commit->end = end;
}

static void send_small(struct mfs_dirty *d, struct mfs_chunk *c)
{
    struct mfs_dirty_part parts[SMALL_PARTS];
    struct mfs_dirty_commit commit;
    int rc;

    mfs_chunk_detach(c);
    wait_commit_turn(d);
    plan_small(d, c, parts, &commit);
    rc = call_commit_retrying(d, &commit);
    if (rc)
        mfs_dirty_fail(d, commit_failed(d, rc));
    mfs_chunk_drop(c);
    commit_ended(d);
}

/* --- stripes --- */

struct target { /* chunks of these stripes, older than this id */
    uint32_t first, last;
    uint64_t id;
};

static bool is_target(const struct mfs_chunk *c, const struct target *t)
{
    return c->id < t->id && c->stripe >= t->first && c->stripe <= t->last;
}

/* Takes a batch for the calling thread and, the first time, has the rest queued for the senders. */
static size_t collect(struct mfs_dirty *d, const struct target *t, struct mfs_chunk **batch,
                      bool first)
{
    size_t n = 0, bytes = 0;
    struct mfs_chunk *c;

    TAILQ_FOREACH(c, &d->chunks, in_file)
    {
        if (c->id >= t->id)
            break;
        if (!is_target(c, t) || c->in_flight)
            continue;
        if (c->slot->in_flight) {
            c->wanted = true;
        } else if (n < MFS_WB_BATCH && (!n || bytes + c->cap <= d->wb->stripe_size)) {
            if (!mfs_wb_take(c))
                continue;
            batch[n++] = c;
            bytes += c->cap;
        } else if (first) {
            mfs_wb_queue(c);
        } else {
            break;
        }
    }
    return n;
}

static bool any_target(struct mfs_dirty *d, const struct target *t)
{
    struct mfs_chunk *c;

    TAILQ_FOREACH(c, &d->chunks, in_file)
    {
        if (c->id >= t->id)
            return false;
        if (is_target(c, t))
            return true;
    }
    return false;
}

/* A partition may turn out to be full while this waits. */
static enum mfs_phase waited_for(struct mfs_dirty *d, const struct target *t)
{
    struct mfs_chunk *c;

    if (atomic_load(&d->wb->full_until) > mfs_clock_mono())
        return MFS_PHASE_ROOM;
    TAILQ_FOREACH(c, &d->chunks, in_file)
    {
        if (c->id >= t->id)
            break;
        if (is_target(c, t) && atomic_load(&c->no_room))
            return MFS_PHASE_ROOM;
    }
    return MFS_PHASE_DATA;
}

static void send_stripes(struct mfs_dirty *d, const struct target *t)
{
    struct mfs_chunk *batch[MFS_WB_BATCH];
    bool first = true;
    size_t n;

    while ((n = collect(d, t, batch, first))) {
        first = false;
        pthread_mutex_unlock(&d->lock);
        mfs_wb_send(d->wb, batch, n);
        pthread_mutex_lock(&d->lock);
    }
    while (any_target(d, t)) {
        mfs_phase_wait(waited_for(d, t));
        mfs_cond_wait(&d->changed, &d->lock, 100 * MFS_MSEC);
        mfs_phase_over();
    }
}

/* What failed after the first `before` errors: also when another flush of the same open file that
 * ran at the same time has told it as well. */
static int tell_error(struct mfs_dirty *d, uint64_t before, uint64_t *seen)
{
    int rc = d->errors > before ? d->flush_error : 0;

    if (rc && seen) {
        *seen = d->errors_reported = d->errors;
        d->write_error = 0;
    }
    return rc;
}

uint64_t mfs_dirty_seen(struct mfs_dirty *d)
{
    uint64_t seen;

    pthread_mutex_lock(&d->lock);
    seen = d->errors_reported;
    pthread_mutex_unlock(&d->lock);
    return seen;
}

int mfs_dirty_flush(struct mfs_dirty *d, uint64_t *seen)
{
    struct target all = {.last = UINT32_MAX};
    struct mfs_chunk *small;
    uint64_t before;
    int rc;

    mfs_dirty_store_gathered(d, false);
    pthread_mutex_lock(&d->lock);
    all.id = d->next_id;
    before = seen ? *seen : d->errors;
    d->flushing++;
    small = small_chunk(d);
    if (small)
        send_small(d, small);
    else
        send_stripes(d, &all);
    rc = commit_stored(d);
    if (rc)
        mfs_dirty_fail(d, rc);
    assert(d->flushing > 0);
    d->flushing--;
    if (d->stored.fresh && !d->flushing)
        mfs_wb_commit_at(d, mfs_clock_mono() + d->wb->opts.max_age);
    rc = tell_error(d, before, seen);
    pthread_mutex_unlock(&d->lock);
    return rc;
}

static struct target target_of(struct mfs_dirty *d, uint64_t off, uint64_t len)
{
    uint32_t size = d->stripe_size;
    uint64_t end = len < UINT64_MAX - off ? off + len : UINT64_MAX;
    uint64_t first = off / size, last = (end - 1) / size;

    return (struct target){.first = first < UINT32_MAX ? (uint32_t)first : UINT32_MAX,
                           .last = last < UINT32_MAX ? (uint32_t)last : UINT32_MAX,
                           .id = d->next_id};
}

void mfs_dirty_store_range(struct mfs_dirty *d, uint64_t off, uint64_t len)
{
    struct target range;

    if (!len)
        return;
    pthread_mutex_lock(&d->lock);
    range = target_of(d, off, len);
    send_stripes(d, &range);
    pthread_mutex_unlock(&d->lock);
}
