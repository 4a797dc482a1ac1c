/* Sending chunks: detached from their files, written to the stripes in one round trip, and settled:
 * gone, to be tried again when the partition was full, or failed. */
#include "data/writeback/writeback_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "data/stripes/geometry.h"

/* A partition that let a sender wait this long before it failed … */
#define FAIL_SLOW (1 * MFS_SEC)
/* … fails what was already waiting for it during this time, unasked: else a long queue for a
 * partition that does not answer would take its I/O timeout again and again. */
#define FAIL_REST (5 * MFS_SEC)

bool mfs_chunk_detach(struct mfs_chunk *c)
{
    if (!c->in_flight) {
        c->slot->open = NULL;
        c->slot->in_flight = c;
        c->in_flight = true;
    }
    return c->ranges.n > 0 && !c->give_up;
}

/* An older chunk has ended: the newer one of its stripe may go. */
static void let_go(struct mfs_chunk *c)
{
    if (c->wanted)
        mfs_wb_queue(c);
    else
        mfs_wb_idle(c);
}

static void forget(struct mfs_chunk *c)
{
    struct mfs_dirty *d = c->d;
    struct mfs_slot *slot = c->slot;

    mfs_wb_complete(c);
    d->left[d->mark++ % MFS_DIRTY_LEFT_MAX] = c->stripe;
    TAILQ_REMOVE(&d->chunks, c, in_file);
    if (slot->open == c)
        slot->open = NULL;
    if (slot->in_flight == c)
        slot->in_flight = NULL;
    if (slot->open) {
        let_go(slot->open);
    } else if (!slot->in_flight) {
        HASH_DEL(d->slots, slot);
        free(slot);
    }
    mfs_wb_release(d, c->cap);
    pthread_cond_broadcast(&d->changed);
    mfs_bufs_put(d->wb->bufs, c->mem, c->cap);
    mfs_ranges_fini(&c->ranges);
    free(c);
}

/* A commit is to make it known: if nothing else, that others do not know the content. */
static void note_change(struct mfs_chunk *c)
{
    struct mfs_dirty *d = c->d;
    struct mfs_stored *s = &d->stored;

    if (!s->any || mfs_timespec_cmp(c->mtime, s->mtime) > 0)
        s->mtime = c->mtime;
    s->any = s->fresh = true;
    s->drops |= c->drops;
    if (!d->flushing)
        mfs_wb_commit_at(d, s->ranges.n > MFS_WB_PLACES ? 0 : c->dirtied_at + d->wb->opts.max_age);
}

/* Its content is in the stripe, the file's attributes do not know it yet. */
static int note_stored(struct mfs_chunk *c, const struct mfs_stripe_put *put)
{
    struct mfs_stored *s = &c->d->stored;
    uint64_t base = (uint64_t)c->stripe * c->d->stripe_size;
    uint64_t old = base + (uint64_t)put->was;
    int rc = 0;

    for (uint32_t i = 0; i < c->ranges.n && !rc; i++) {
        uint64_t lo = base + c->ranges.v[i].lo,
                 block = lo / MFS_GEOMETRY_BLOCK * MFS_GEOMETRY_BLOCK;

        /* With the zeros before it in the same block, if they came along. */
        if (old < lo)
            lo = old > block ? old : block;
        rc = mfs_ranges_add(&s->ranges, lo, base + c->ranges.v[i].hi);
    }
    s->alloc += put->grown;
    note_change(c);
    return rc;
}

void mfs_chunk_settle(struct mfs_chunk *c, const struct mfs_stripe_put *put)
{
    int rc = put->rc;

    if ((rc == -ENOSPC || rc == -EAGAIN) && !c->give_up) {
        if (mfs_wb_delay(c, rc))
            return;
        rc = rc == -EAGAIN ? -EIO : rc;
    }
    if (!rc)
        rc = note_stored(c, put);
    else if ((rc == -EIO || rc == -ETIMEDOUT) && !c->give_up)
        note_change(c); /* it may be there, in the place of other content */
    if (rc && !c->give_up) {
        mfs_metric_add(c->d->wb->metrics, MFS_WB_LOST, 0, mfs_ranges_bytes(&c->ranges));
        mfs_dirty_fail(c->d, rc);
    }
    forget(c);
}

void mfs_chunk_drop(struct mfs_chunk *c)
{
    forget(c);
}

static void settle(struct mfs_chunk *c, const struct mfs_stripe_put *put)
{
    struct mfs_dirty *d = c->d;

    pthread_mutex_lock(&d->lock);
    mfs_chunk_settle(c, put);
    pthread_mutex_unlock(&d->lock);
}

/* 0, or the error of a partition that just kept others waiting in vain. */
static int known_failure(struct mfs_writeback *wb, const struct mfs_chunk *c)
{
    struct mfs_wb_part *p = &wb->parts[c->part];
    int rc = 0;

    pthread_mutex_lock(&wb->lock);
    if (c->dirtied_at < p->failed_at && mfs_clock_mono() - p->failed_at < FAIL_REST)
        rc = p->failed_rc;
    pthread_mutex_unlock(&wb->lock);
    return rc;
}

/* What is small tells of the way there and back, but not of the link. */
static bool tells_pace(const struct mfs_chunk *c)
{
    return mfs_ranges_bytes(&c->ranges) > c->d->wb->stripe_size / 2;
}

static void note_result(struct mfs_writeback *wb, uint32_t part, int rc, int64_t since)
{
    struct mfs_wb_part *p = &wb->parts[part];
    int64_t now = mfs_clock_mono();

    pthread_mutex_lock(&wb->lock);
    if (rc == 0) {
        p->stored_at = now;
    } else if ((rc == -EIO || rc == -ETIMEDOUT) && now - since >= FAIL_SLOW) {
        p->failed_at = now;
        p->failed_rc = rc;
    }
    pthread_mutex_unlock(&wb->lock);
}

/* Detaches the chunks and settles those that need no sending; returns how many are left. */
static size_t detach_all(struct mfs_writeback *wb, struct mfs_chunk **chunks, size_t n,
                         size_t *nspans)
{
    size_t left = 0;

    *nspans = 0;
    for (size_t i = 0; i < n; i++) {
        struct mfs_chunk *c = chunks[i];
        struct mfs_dirty *d = c->d;
        bool live;
        int rc;

        pthread_mutex_lock(&d->lock);
        live = mfs_chunk_detach(c);
        rc = live ? known_failure(wb, c) : 0;
        if (!live)
            mfs_chunk_drop(c);
        else if (rc)
            mfs_chunk_settle(c, &(struct mfs_stripe_put){.rc = rc});
        pthread_mutex_unlock(&d->lock);
        if (live && !rc) {
            *nspans += c->ranges.n;
            chunks[left++] = c;
        }
    }
    return left;
}

static struct mfs_span *fill_put(struct mfs_stripe_put *put, const struct mfs_chunk *c,
                                 struct mfs_span *spans)
{
    *put = (struct mfs_stripe_put){
        .ino = c->d->ino, .stripe = c->stripe, .spans = spans, .nspans = c->ranges.n};
    for (uint32_t i = 0; i < c->ranges.n; i++) {
        const struct mfs_range *r = &c->ranges.v[i];

        *spans++ = (struct mfs_span){r->lo, r->hi - r->lo, c->mem + (r->lo - c->base)};
    }
    return spans;
}

void mfs_wb_send(struct mfs_writeback *wb, struct mfs_chunk **chunks, size_t n)
{
    struct mfs_stripe_put puts[MFS_WB_BATCH];
    struct mfs_span few[MFS_WB_BATCH], *spans = few, *next;
    size_t nspans;
    int64_t since;

    n = detach_all(wb, chunks, n, &nspans);
    if (!n)
        return;
    if (nspans > MFS_WB_BATCH)
        spans = malloc(nspans * sizeof *spans);
    if (!spans) {
        for (size_t i = 0; i < n; i++)
            settle(chunks[i], &(struct mfs_stripe_put){.rc = -ENOMEM});
        return;
    }
    next = spans;
    for (size_t i = 0; i < n; i++)
        next = fill_put(&puts[i], chunks[i], next);
    since = mfs_clock_mono();
    mfs_stripe_put(wb->store, puts, n, false);
    if (n == 1 && !puts[0].rc && tells_pace(chunks[0]))
        mfs_wb_took(chunks[0], mfs_clock_mono() - since);
    for (size_t i = 0; i < n; i++) {
        note_result(wb, chunks[i]->part, puts[i].rc, since);
        settle(chunks[i], &puts[i]);
    }
    if (spans != few)
        free(spans);
}
