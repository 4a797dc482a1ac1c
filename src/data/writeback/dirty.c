/* One file's dirty ranges: writes taken in, cut off, and shown to readers. */
#include "data/writeback/writeback_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/phases.h"
#include "base/threads/thread.h"
#include "cluster/placement.h"
#include "data/stripes/geometry.h"

#define PAGE       4096U
#define RANGES_MAX 64              /* more in a stripe: it is sent early */
#define STALL_MAX  (180 * MFS_SEC) /* a write waits no longer than this for room */

int mfs_dirty_create(struct mfs_dirty **out, struct mfs_writeback *wb, uint64_t ino,
                     mfs_dirty_commit_fn *commit, void *arg)
{
    static _Atomic uint64_t files;
    struct mfs_dirty *d = calloc(1, sizeof *d);

    *out = d;
    if (!d)
        return -ENOMEM;
    d->wb = wb;
    d->ino = ino;
    d->stripe_size = mfs_store_stripe_of(wb->store, ino);
    d->commit = commit;
    d->arg = arg;
    d->mark = atomic_fetch_add(&files, 1) << 32;
    pthread_mutex_init(&d->lock, NULL);
    mfs_cond_init(&d->changed);
    TAILQ_INIT(&d->chunks);
    mfs_ranges_init(&d->stored.ranges);
    mfs_ranges_init(&d->committing.ranges);
    return 0;
}

/* d->lock is held; bounded by what senders do, each step of which is. */
static void wait_changed(struct mfs_dirty *d)
{
    mfs_phase_wait(MFS_PHASE_DATA);
    mfs_cond_wait(&d->changed, &d->lock, MFS_SEC);
    mfs_phase_over();
}

/* Takes bytes at or beyond `from` (a file offset) out of a chunk; the chunk may be gone then. */
static void cut_chunk(struct mfs_chunk *c, uint64_t from)
{
    uint64_t base = (uint64_t)c->stripe * c->d->stripe_size;
    uint32_t keep = from > base ? (uint32_t)(from - base) : 0;

    if (!c->in_flight)
        mfs_ranges_cut(&c->ranges, keep);
    else if (!keep)
        c->give_up = true;
    if ((c->in_flight ? c->give_up : !c->ranges.n) && mfs_wb_take(c))
        mfs_chunk_drop(c);
}

/* Were there any? */
static bool cut_chunks(struct mfs_dirty *d, uint64_t from)
{
    struct mfs_chunk *c, *next;
    bool any = false;

    for (c = TAILQ_FIRST(&d->chunks); c; c = next) {
        uint64_t base = (uint64_t)c->stripe * d->stripe_size;

        next = TAILQ_NEXT(c, in_file);
        any |= base + mfs_ranges_end(&c->ranges) > from;
        if (base + d->stripe_size > from)
            cut_chunk(c, from);
    }
    return any;
}

static bool in_flight_beyond(struct mfs_dirty *d, uint64_t from)
{
    struct mfs_chunk *c;

    TAILQ_FOREACH(c, &d->chunks, in_file)
    {
        if (c->in_flight && ((uint64_t)c->stripe + 1) * d->stripe_size > from)
            return true;
    }
    return false;
}

/* A commit that is under way may tell an end beyond the cut: it must not come after it. */
bool mfs_dirty_cut(struct mfs_dirty *d, uint64_t from)
{
    bool any;

    pthread_mutex_lock(&d->lock);
    any = cut_chunks(d, from);
    while (in_flight_beyond(d, from) || d->committing.any)
        wait_changed(d);
    any |= mfs_ranges_end(&d->stored.ranges) > from;
    mfs_ranges_cut(&d->stored.ranges, from);
    pthread_mutex_unlock(&d->lock);
    return any;
}

void mfs_dirty_lost(struct mfs_dirty *d, int rc)
{
    pthread_mutex_lock(&d->lock);
    mfs_dirty_fail(d, rc);
    pthread_mutex_unlock(&d->lock);
}

void mfs_dirty_destroy(struct mfs_dirty *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    cut_chunks(d, 0);
    while (!TAILQ_EMPTY(&d->chunks) || d->committing.any) {
        wait_changed(d);
        cut_chunks(d, 0);
    }
    d->stored.fresh = false;
    mfs_ranges_fini(&d->stored.ranges);
    pthread_mutex_unlock(&d->lock);
    mfs_wb_commit_never(d);
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* --- writing: d->lock is held --- */

static struct mfs_slot *find_slot(struct mfs_dirty *d, uint32_t stripe)
{
    struct mfs_slot *slot;

    HASH_FIND(hh, d->slots, &stripe, sizeof stripe, slot);
    return slot;
}

static struct mfs_slot *need_slot(struct mfs_dirty *d, uint32_t stripe)
{
    struct mfs_slot *slot = find_slot(d, stripe);

    if (slot)
        return slot;
    slot = calloc(1, sizeof *slot);
    if (!slot)
        return NULL;
    slot->stripe = stripe;
    HASH_ADD(hh, d->slots, stripe, sizeof slot->stripe, slot);
    if (!slot->hh.tbl) {
        free(slot);
        return NULL;
    }
    return slot;
}

struct window { /* the part of a stripe that a buffer covers */
    uint32_t base;
    size_t cap;
};

/* The window for what a chunk holds (c may be NULL) and a piece: as small as the sizes of buffers
 * allow, but a whole stripe at once for a writer that comes from the stripe before. */
static struct window plan_window(struct mfs_dirty *d, const struct mfs_chunk *c,
                                 const struct mfs_piece *p, bool streaming)
{
    size_t stripe_size = d->stripe_size;
    uint32_t lo = p->off, hi = p->off + p->len;
    struct window w;

    if (c && c->ranges.n) {
        lo = c->ranges.v[0].lo < lo ? c->ranges.v[0].lo : lo;
        hi = mfs_ranges_end(&c->ranges) > hi ? mfs_ranges_end(&c->ranges) : hi;
    }
    w.base = lo - lo % PAGE;
    w.cap = mfs_bufs_size(streaming ? stripe_size : hi - w.base, stripe_size);
    if (w.base + w.cap > stripe_size)
        w.base = (uint32_t)(stripe_size - w.cap);
    return w;
}

static bool covers(const struct mfs_chunk *c, const struct mfs_piece *p)
{
    return p->off >= c->base && p->off + p->len <= c->base + c->cap;
}

static struct mfs_chunk *new_chunk(struct mfs_dirty *d, uint32_t stripe, struct window w, char *mem)
{
    struct mfs_slot *slot = need_slot(d, stripe);
    struct mfs_chunk *c = slot ? calloc(1, sizeof *c) : NULL;

    if (!c) {
        if (slot && !slot->in_flight) {
            HASH_DEL(d->slots, slot);
            free(slot);
        }
        return NULL;
    }
    c->d = d;
    c->slot = slot;
    c->id = d->next_id++;
    c->stripe = stripe;
    c->part = mfs_placement_stripe(d->ino, stripe, d->wb->nparts);
    c->dirtied_at = mfs_clock_mono();
    mfs_ranges_init(&c->ranges);
    c->base = w.base;
    c->mem = mem;
    c->cap = w.cap;
    slot->open = c;
    TAILQ_INSERT_TAIL(&d->chunks, c, in_file);
    if (slot->in_flight)
        c->state = MFS_CHUNK_HELD;
    else
        mfs_wb_idle(c);
    return c;
}

static void move_window(struct mfs_chunk *c, struct window w, char *mem)
{
    for (uint32_t i = 0; i < c->ranges.n; i++) {
        const struct mfs_range *r = &c->ranges.v[i];

        memcpy(mem + (r->lo - w.base), c->mem + (r->lo - c->base), r->hi - r->lo);
    }
    mfs_bufs_put(c->d->wb->bufs, c->mem, c->cap);
    c->mem = mem;
    c->base = w.base;
    mfs_wb_resize(c, w.cap);
}

/* The open chunk of the piece's stripe with room for it. Drops d->lock while it waits. */
static int get_chunk(struct mfs_dirty *d, const struct mfs_piece *p, bool streaming,
                     struct mfs_chunk **out)
{
    int64_t since = mfs_clock_mono(), until = since + STALL_MAX;
    uint32_t part = mfs_placement_stripe(d->ino, p->stripe, d->wb->nparts);

    for (;;) {
        struct mfs_slot *slot = find_slot(d, p->stripe);
        struct mfs_chunk *c = slot ? slot->open : NULL;
        struct window w;
        char *mem;
        int rc;

        *out = c;
        if (c && covers(c, p))
            return 0;
        w = plan_window(d, c, p, streaming);
        if (mfs_wb_reserve(d, w.cap)) {
            mem = mfs_bufs_get(d->wb->bufs, w.cap);
            if (mem && c)
                move_window(c, w, mem);
            else if (mem)
                *out = new_chunk(d, p->stripe, w, mem);
            if (mem && *out)
                return 0;
            mfs_bufs_put(d->wb->bufs, mem, w.cap);
            mfs_wb_release(d, w.cap);
            return -ENOMEM;
        }
        pthread_mutex_unlock(&d->lock);
        rc = mfs_wb_wait_room(d, w.cap, until);
        if (!rc && mfs_wb_full_since(d->wb, part, since))
            rc = -ENOSPC; /* what was there before it has waited in vain */
        pthread_mutex_lock(&d->lock);
        if (rc)
            return rc;
    }
}

/* Nothing more is likely to come: the stripe is full, or written to its end; or it is in bits. */
static bool is_finished(const struct mfs_chunk *c)
{
    return c->ranges.n > RANGES_MAX || (c->ranges.n == 1 && c->ranges.v[0].hi == c->d->stripe_size);
}

static int write_piece(struct mfs_dirty *d, const struct mfs_piece *p, const char *buf, bool drops)
{
    uint64_t off = (uint64_t)p->stripe * d->stripe_size + p->off;
    bool streaming = p->stripe && !p->off && off == d->last_end;
    struct mfs_chunk *c;
    int rc = get_chunk(d, p, streaming, &c);

    if (rc)
        return rc;
    rc = mfs_ranges_add(&c->ranges, p->off, p->off + p->len);
    if (rc)
        return rc;
    memcpy(c->mem + (p->off - c->base), buf, p->len);
    c->mtime = mfs_clock_real();
    c->drops |= drops;
    d->last_end = off + p->len;
    if (!is_finished(c))
        return 0;
    if (c->slot->in_flight)
        c->wanted = true;
    else
        mfs_wb_queue(c);
    return 0;
}

/* No lock is held. */
static bool any_full(struct mfs_dirty *d, uint64_t off, size_t len)
{
    struct mfs_writeback *wb = d->wb;

    if (!atomic_load(&wb->full_until))
        return false;
    while (len) {
        struct mfs_piece p = mfs_geometry_piece(off, len, d->stripe_size);

        if (mfs_wb_still_full(wb, mfs_placement_stripe(d->ino, p.stripe, wb->nparts)))
            return true;
        off += p.len;
        len -= p.len;
    }
    return false;
}

int mfs_dirty_write(struct mfs_dirty *d, uint64_t off, size_t len, const void *buf, bool drops)
{
    const char *from = buf;
    bool full = any_full(d, off, len);
    int rc;

    pthread_mutex_lock(&d->lock);
    rc = d->write_error;
    d->write_error = 0;
    if (!rc && full)
        rc = -ENOSPC;
    while (len && !rc) {
        struct mfs_piece p = mfs_geometry_piece(off, len, d->stripe_size);

        rc = write_piece(d, &p, from, drops);
        off += p.len;
        from += p.len;
        len -= p.len;
    }
    pthread_mutex_unlock(&d->lock);
    return rc;
}

/* --- what is gathered elsewhere --- */

void mfs_dirty_gathered(struct mfs_dirty *d, mfs_dirty_gathered_fn *fn, int64_t at)
{
    atomic_store(&d->gathered, fn);
    mfs_wb_commit_at(d, at);
}

void mfs_dirty_gathers(struct mfs_dirty *d, bool any)
{
    atomic_store(&d->gathers, any);
}

void mfs_dirty_store_gathered(struct mfs_dirty *d, bool due)
{
    mfs_dirty_gathered_fn *fn = atomic_load(&d->gathered);

    if (fn)
        fn(d->arg, due);
}

/* --- what others see --- */

bool mfs_dirty_any(struct mfs_dirty *d)
{
    bool any;

    pthread_mutex_lock(&d->lock);
    any =
        atomic_load(&d->gathers) || !TAILQ_EMPTY(&d->chunks) || d->stored.any || d->committing.any;
    pthread_mutex_unlock(&d->lock);
    return any;
}

struct seen {
    bool any;
    uint64_t end, bytes;
    struct timespec mtime;
};

static void see(struct seen *s, uint64_t base, const struct mfs_ranges *ranges,
                struct timespec mtime)
{
    uint64_t end = base + mfs_ranges_end(ranges);

    if (!s->any || end > s->end)
        s->end = end;
    s->bytes += mfs_ranges_bytes(ranges);
    if (!s->any || mfs_timespec_cmp(mtime, s->mtime) > 0)
        s->mtime = mtime;
    s->any = true;
}

bool mfs_dirty_attr(struct mfs_dirty *d, uint64_t *end, uint64_t *bytes, struct timespec *mtime)
{
    struct seen s = {0};
    struct mfs_chunk *c;

    pthread_mutex_lock(&d->lock);
    TAILQ_FOREACH(c, &d->chunks, in_file)
    {
        if (c->ranges.n && !c->give_up)
            see(&s, (uint64_t)c->stripe * d->stripe_size, &c->ranges, c->mtime);
    }
    if (d->stored.any)
        see(&s, 0, &d->stored.ranges, d->stored.mtime);
    if (d->committing.any)
        see(&s, 0, &d->committing.ranges, d->committing.mtime);
    pthread_mutex_unlock(&d->lock);
    if (!s.any)
        return false;
    *end = s.end;
    if (bytes)
        *bytes = s.bytes;
    *mtime = s.mtime;
    return true;
}

static int add_within(struct mfs_ranges *to, const struct mfs_ranges *from, uint64_t off,
                      uint64_t len)
{
    int rc = 0;

    for (uint32_t i = mfs_ranges_behind(from, off); i < from->n && !rc; i++) {
        const struct mfs_range *r = &from->v[i];
        uint64_t lo = r->lo > off ? r->lo - off : 0;

        if (lo >= len)
            break;
        rc = mfs_ranges_add(to, lo, r->hi - off < len ? r->hi - off : len);
    }
    return rc;
}

int mfs_dirty_stored(struct mfs_dirty *d, uint64_t off, size_t len, struct mfs_ranges *stored)
{
    int rc;

    pthread_mutex_lock(&d->lock);
    rc = add_within(stored, &d->stored.ranges, off, len);
    if (!rc)
        rc = add_within(stored, &d->committing.ranges, off, len);
    pthread_mutex_unlock(&d->lock);
    return rc;
}

static bool overlay_chunk(const struct mfs_chunk *c, const struct mfs_piece *p, char *buf)
{
    uint32_t lo = p->off, hi = p->off + p->len;
    bool any = false;

    for (uint32_t i = 0; i < c->ranges.n && c->ranges.v[i].lo < hi; i++) {
        uint32_t from = c->ranges.v[i].lo > lo ? c->ranges.v[i].lo : lo;
        uint32_t to = c->ranges.v[i].hi < hi ? c->ranges.v[i].hi : hi;

        if (from >= to)
            continue;
        memcpy(buf + (from - lo), c->mem + (from - c->base), to - from);
        any = true;
    }
    return any;
}

bool mfs_dirty_overlay(struct mfs_dirty *d, uint64_t off, size_t len, void *buf)
{
    char *to = buf;
    bool any = false;

    pthread_mutex_lock(&d->lock);
    while (len && d->slots) {
        struct mfs_piece p = mfs_geometry_piece(off, len, d->stripe_size);
        struct mfs_slot *slot = find_slot(d, p.stripe);

        if (slot && slot->in_flight && !slot->in_flight->give_up)
            any |= overlay_chunk(slot->in_flight, &p, to);
        if (slot && slot->open)
            any |= overlay_chunk(slot->open, &p, to);
        off += p.len;
        to += p.len;
        len -= p.len;
    }
    pthread_mutex_unlock(&d->lock);
    return any;
}

uint64_t mfs_dirty_mark(struct mfs_dirty *d)
{
    uint64_t mark;

    pthread_mutex_lock(&d->lock);
    mark = d->mark;
    pthread_mutex_unlock(&d->lock);
    return mark;
}

size_t mfs_dirty_left(struct mfs_dirty *d, uint64_t since, uint32_t stripes[MFS_DIRTY_LEFT_MAX],
                      uint64_t *mark)
{
    size_t n = SIZE_MAX;

    pthread_mutex_lock(&d->lock);
    *mark = d->mark;
    if (since <= d->mark && d->mark - since <= MFS_DIRTY_LEFT_MAX)
        for (n = 0; since + n < d->mark; n++)
            stripes[n] = d->left[(since + n) % MFS_DIRTY_LEFT_MAX];
    pthread_mutex_unlock(&d->lock);
    return n;
}
