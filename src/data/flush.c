/* Flushing a file: what is dirty goes to the stripes, then a commit makes it known.
 *
 *   small file      everything dirty is one chunk of stripe 0, a few KiB: the commit carries it
 *   little          the flushing thread sends it itself, all stripes in one round trip
 *   much            the senders get it, the flushing thread works along on this file's chunks
 *
 * Only what was written before the call is waited for: chunks with an id below the next one at that
 * time. Commits of a file come one after the other. One that a sender makes behind a writer's back
 * only tells an end below which everything is stored, so that who follows the file from another
 * mount never sees zeros where data are on their way. */
#include "data/writeback_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "cluster/placement.h"

#define SMALL_BYTES 65536U
#define SMALL_PARTS 16U

#define RETRY_FIRST (10 * MFS_MSEC)
#define RETRY_LAST  (200 * MFS_MSEC)

/* All static functions of this file are called with d->lock held; those that wait or talk to a
 * partition drop it meanwhile. */

void mfs_dirty_fail(struct mfs_dirty *d, int rc)
{
    if (d->errors == d->errors_told)
        mfs_error("data", "file %llx: written data are lost: %s", (unsigned long long)d->ino,
                  strerror(-rc));
    d->write_error = d->write_error ? d->write_error : rc;
    if (d->errors++ == d->errors_told)
        d->flush_error = rc;
}

/* --- commits --- */

static void wait_commit_turn(struct mfs_dirty *d)
{
    while (d->committing.any)
        mfs_cond_wait(&d->changed, &d->lock, MFS_SEC);
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
static int call_commit_patiently(struct mfs_dirty *d, const struct mfs_dirty_commit *c)
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
        mfs_clock_sleep(pause);
        pthread_mutex_lock(&d->lock);
        pause = pause * 2 < RETRY_LAST ? pause * 2 : RETRY_LAST;
    }
}

static void commit_ended(struct mfs_dirty *d)
{
    d->committing.any = false;
    pthread_cond_broadcast(&d->changed);
}

static int commit_stored(struct mfs_dirty *d)
{
    struct mfs_dirty_commit c;
    int rc;

    wait_commit_turn(d);
    if (!d->stored.any)
        return 0;
    d->committing = d->stored;
    d->stored = (struct mfs_stored){0};
    c = (struct mfs_dirty_commit){
        .end = d->committing.end, .alloc = d->committing.alloc, .mtime = d->committing.mtime};
    rc = call_commit_patiently(d, &c);
    if (rc)
        d->stored.alloc += c.alloc;
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
        uint64_t begin = (uint64_t)c->stripe * d->wb->stripe_size;

        if (c->ranges.n && begin + c->ranges.v[0].lo < first)
            first = begin + c->ranges.v[0].lo;
    }
    return first;
}

/* Puts back what a commit took and did not make known. */
static void restore(struct mfs_stored *s, const struct mfs_stored *old)
{
    if (!s->any || old->begin < s->begin)
        s->begin = old->begin;
    if (!s->any || old->end > s->end)
        s->end = old->end;
    if (!s->any || mfs_timespec_cmp(old->mtime, s->mtime) > 0)
        s->mtime = old->mtime;
    s->any = true;
}

void mfs_dirty_commit_behind(struct mfs_dirty *d)
{
    struct mfs_dirty_commit c;
    uint64_t limit;
    int rc;

    pthread_mutex_lock(&d->lock);
    if (d->committing.any || d->flushing || !d->stored.fresh)
        goto out;
    limit = first_dirty(d);
    d->committing = d->stored;
    d->stored = (struct mfs_stored){0};
    c = (struct mfs_dirty_commit){
        .end = d->committing.end, .alloc = d->committing.alloc, .mtime = d->committing.mtime};
    if (c.end > limit)
        c.end = limit > d->committing.begin ? limit : 0;
    rc = call_commit(d, &c);
    if (rc)
        d->stored.alloc += c.alloc;
    if (rc == -ENOSPC || c.end < d->committing.end)
        restore(&d->stored, &d->committing);
    if (rc == -ENOSPC) {
        d->stored.fresh = true;
        mfs_wb_commit_at(d, mfs_clock_mono() + d->wb->opts.max_age);
    } else if (rc) {
        mfs_dirty_fail(d, rc);
    }
    commit_ended(d);
out:
    pthread_mutex_unlock(&d->lock);
}

/* --- a small file --- */

static struct mfs_chunk *small_chunk(struct mfs_dirty *d)
{
    struct mfs_chunk *c = TAILQ_FIRST(&d->chunks);

    if (!c || TAILQ_NEXT(c, in_file) || c->stripe || c->flying || !c->ranges.n ||
        c->ranges.n > SMALL_PARTS || mfs_ranges_bytes(&c->ranges) > SMALL_BYTES)
        return NULL;
    return mfs_wb_take(c) ? c : NULL;
}

static void send_small(struct mfs_dirty *d, struct mfs_chunk *c)
{
    struct mfs_dirty_part parts[SMALL_PARTS];
    struct mfs_dirty_commit commit = {.parts = parts, .nparts = c->ranges.n};
    struct mfs_stored *now = &d->committing;
    int rc;

    mfs_chunk_detach(c);
    for (uint32_t i = 0; i < c->ranges.n; i++) {
        const struct mfs_range *r = &c->ranges.v[i];

        parts[i] = (struct mfs_dirty_part){r->lo, r->hi - r->lo, c->mem + (r->lo - c->base)};
    }
    wait_commit_turn(d);
    *now = (struct mfs_stored){.any = true, .end = mfs_ranges_end(&c->ranges), .mtime = c->mtime};
    if (d->stored.any)
        restore(now, &d->stored);
    now->alloc = d->stored.alloc;
    d->stored = (struct mfs_stored){0};
    commit.end = now->end;
    commit.alloc = now->alloc;
    commit.mtime = now->mtime;
    rc = call_commit_patiently(d, &commit);
    if (rc) {
        d->stored.alloc += commit.alloc;
        mfs_dirty_fail(d, rc);
    }
    mfs_chunk_drop(c);
    commit_ended(d);
}

/* --- stripes --- */

struct target { /* chunks of these stripes, older than this id */
    uint32_t first, last;
    uint64_t id;
};

static bool is_aimed(const struct mfs_chunk *c, const struct target *t)
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
        if (!is_aimed(c, t) || c->flying)
            continue;
        if (c->slot->flying) {
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

static bool any_aimed(struct mfs_dirty *d, const struct target *t)
{
    struct mfs_chunk *c;

    TAILQ_FOREACH(c, &d->chunks, in_file)
    {
        if (c->id >= t->id)
            return false;
        if (is_aimed(c, t))
            return true;
    }
    return false;
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
    while (any_aimed(d, t))
        mfs_cond_wait(&d->changed, &d->lock, MFS_SEC);
}

/* What failed since `told` errors had been told: also when another flush that ran at the same time
 * has told it as well. */
static int take_error(struct mfs_dirty *d, uint64_t told)
{
    int rc = d->errors > told ? d->flush_error : 0;

    d->errors_told = d->errors;
    d->write_error = 0;
    return rc;
}

int mfs_dirty_flush(struct mfs_dirty *d)
{
    struct target all = {.last = UINT32_MAX};
    struct mfs_chunk *small;
    uint64_t told;
    int rc;

    pthread_mutex_lock(&d->lock);
    all.id = d->next_id;
    told = d->errors_told;
    d->flushing++;
    small = small_chunk(d);
    if (small)
        send_small(d, small);
    else
        send_stripes(d, &all);
    rc = commit_stored(d);
    if (rc)
        mfs_dirty_fail(d, rc);
    d->flushing--;
    if (d->stored.fresh && !d->flushing)
        mfs_wb_commit_at(d, mfs_clock_mono() + d->wb->opts.max_age);
    rc = take_error(d, told);
    pthread_mutex_unlock(&d->lock);
    return rc;
}

static struct target aim(struct mfs_dirty *d, uint64_t off, uint64_t len)
{
    uint32_t size = d->wb->stripe_size;
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
    range = aim(d, off, len);
    send_stripes(d, &range);
    pthread_mutex_unlock(&d->lock);
}

int mfs_dirty_flush_range(struct mfs_dirty *d, uint64_t off, uint64_t len)
{
    struct target range;
    uint64_t told;
    int rc;

    if (!len)
        return 0;
    pthread_mutex_lock(&d->lock);
    range = aim(d, off, len);
    told = d->errors_told;
    send_stripes(d, &range);
    rc = take_error(d, told);
    pthread_mutex_unlock(&d->lock);
    return rc;
}
