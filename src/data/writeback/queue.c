/* Where a chunk waits: lingering, in its partition's queue, or for a full partition to have room;
 * and the bounds on what all of them may hold.
 *
 * Each partition has a queue of its own and only so many bytes on the way, and so has each node's
 * link (pace.h), so that one that is slow or stopped does not take all senders; they go round the
 * partitions that are ready. */
#include "data/writeback/writeback_impl.h"

#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/phases.h"
#include "base/threads/thread.h"
#include "data/stripes/stripes.h"

#define FULL_TELL   (1 * MFS_SEC) /* how long a full partition's writes fail at once … */
#define FULL_NEXT   (MFS_SEC / 5) /* … and others are waited for only this long */
#define RETRY_FIRST (10 * MFS_MSEC)
#define RETRY_LAST  (200 * MFS_MSEC)

static_assert(RETRY_FIRST < RETRY_LAST && RETRY_LAST < FULL_TELL && FULL_NEXT < FULL_TELL,
              "a full partition is tried again while its writes fail");

/* --- queues: wb->lock is held --- */

static struct mfs_wb_part *part_of(const struct mfs_chunk *c)
{
    return &c->d->wb->parts[c->part];
}

static void part_check_ready(struct mfs_writeback *wb, struct mfs_wb_part *p)
{
    bool ready =
        !TAILQ_EMPTY(&p->queue) && mfs_links_part_room(&wb->links, (uint32_t)(p - wb->parts));

    if (ready == p->is_ready)
        return;
    p->is_ready = ready;
    if (ready)
        TAILQ_INSERT_TAIL(&wb->ready, p, ready);
    else
        TAILQ_REMOVE(&wb->ready, p, ready);
}

static void unlink_chunk(struct mfs_chunk *c)
{
    struct mfs_writeback *wb = c->d->wb;

    switch (c->state) {
    case MFS_CHUNK_IDLE:
        TAILQ_REMOVE(&wb->idle, c, link);
        assert(wb->idle_bytes >= c->cap);
        wb->idle_bytes -= c->cap;
        break;
    case MFS_CHUNK_QUEUED:
        TAILQ_REMOVE(&part_of(c)->queue, c, link);
        part_check_ready(wb, part_of(c));
        break;
    case MFS_CHUNK_DELAYED:
        TAILQ_REMOVE(&wb->delayed, c, link);
        break;
    case MFS_CHUNK_HELD:
    case MFS_CHUNK_TAKEN:
        break;
    }
}

static void enqueue(struct mfs_chunk *c)
{
    struct mfs_writeback *wb = c->d->wb;

    unlink_chunk(c);
    c->state = MFS_CHUNK_QUEUED;
    TAILQ_INSERT_TAIL(&part_of(c)->queue, c, link);
    part_check_ready(wb, part_of(c));
    mfs_workers_wake(&wb->senders);
}

static void take(struct mfs_chunk *c)
{
    unlink_chunk(c);
    c->state = MFS_CHUNK_TAKEN;
    c->counted = c->cap;
    mfs_links_begin(&c->d->wb->links, c->part, c->counted, mfs_clock_mono());
    part_check_ready(c->d->wb, part_of(c));
}

/* A sender that has completed it looks for more itself; but it may have been a flushing thread. */
static void complete(struct mfs_chunk *c)
{
    struct mfs_writeback *wb = c->d->wb;
    int64_t now = mfs_clock_mono();
    bool waited_for = !TAILQ_EMPTY(&wb->ready) || !TAILQ_EMPTY(&part_of(c)->queue);
    bool makes_room = waited_for && !mfs_links_room(&wb->links, c->part, now);

    mfs_links_end(&wb->links, c->part, c->counted, now);
    c->counted = 0;
    part_check_ready(wb, part_of(c));
    if (makes_room && !TAILQ_EMPTY(&wb->ready))
        mfs_workers_wake(&wb->senders);
}

/* --- chunks between their states --- */

void mfs_wb_idle(struct mfs_chunk *c)
{
    struct mfs_writeback *wb = c->d->wb;

    pthread_mutex_lock(&wb->lock);
    c->state = MFS_CHUNK_IDLE;
    TAILQ_INSERT_TAIL(&wb->idle, c, link);
    wb->idle_bytes += c->cap;
    pthread_mutex_unlock(&wb->lock);
}

void mfs_wb_queue(struct mfs_chunk *c)
{
    struct mfs_writeback *wb = c->d->wb;

    pthread_mutex_lock(&wb->lock);
    if (c->state == MFS_CHUNK_HELD || c->state == MFS_CHUNK_IDLE)
        enqueue(c);
    pthread_mutex_unlock(&wb->lock);
}

bool mfs_wb_take(struct mfs_chunk *c)
{
    struct mfs_writeback *wb = c->d->wb;
    bool mine;

    pthread_mutex_lock(&wb->lock);
    mine = c->state != MFS_CHUNK_TAKEN;
    if (mine)
        take(c);
    pthread_mutex_unlock(&wb->lock);
    return mine;
}

void mfs_wb_complete(struct mfs_chunk *c)
{
    struct mfs_writeback *wb = c->d->wb;

    pthread_mutex_lock(&wb->lock);
    complete(c);
    pthread_mutex_unlock(&wb->lock);
}

void mfs_wb_took(struct mfs_chunk *c, int64_t ns)
{
    struct mfs_writeback *wb = c->d->wb;

    pthread_mutex_lock(&wb->lock);
    mfs_links_took(&wb->links, c->part, ns, mfs_clock_mono());
    pthread_mutex_unlock(&wb->lock);
}

static int64_t retry_pause(unsigned tries)
{
    int64_t pause = RETRY_FIRST << (tries < 5 ? tries : 5);

    return pause < RETRY_LAST ? pause : RETRY_LAST;
}

/* wb->lock is held. */
static void declare_full(struct mfs_writeback *wb, uint32_t part, int64_t now)
{
    struct mfs_wb_part *p = &wb->parts[part];

    if (p->full_until + FULL_TELL < now)
        mfs_warn("data", "partition %u is full: written data could not be stored", part);
    p->full_until = now + FULL_TELL;
    atomic_store(&wb->full_until, p->full_until);
}

/* More may come while the deployment grows. Where not, and one partition has just been waited for
 * in vain, as a rule the memory of all is full: to wait for each in turn would take minutes. */
static int64_t full_wait(struct mfs_writeback *wb, const struct mfs_wb_part *p, int64_t now)
{
    int64_t hope = mfs_store_full_wait(wb->store), usual = wb->opts.full_wait;

    if (hope > 0)
        return hope > usual ? hope : usual;
    if (atomic_load(&wb->full_until) <= now)
        return usual;
    if (p->full_until > p->stored_at)
        return 0; /* this one has been waited for, and has taken nothing since */
    return usual < FULL_NEXT ? usual : FULL_NEXT;
}

bool mfs_wb_delay(struct mfs_chunk *c, int rc)
{
    struct mfs_writeback *wb = c->d->wb;
    struct mfs_wb_part *p = part_of(c);
    int64_t now = mfs_clock_mono(), wait;
    bool again = true;

    pthread_mutex_lock(&wb->lock);
    wait = rc == -ENOSPC ? full_wait(wb, p, now) : wb->opts.full_wait;
    atomic_store(&c->no_room, rc == -ENOSPC);
    if (!c->full_since)
        c->full_since = now;
    if (p->full_until > now && c->dirtied_at < p->full_until - FULL_TELL) {
        again = false; /* it was waited for, in vain, when this one was there already */
    } else if (now - c->full_since >= wait && now - p->stored_at >= wait) {
        /* For so long it has taken nothing from this client. */
        if (rc == -ENOSPC)
            declare_full(wb, c->part, now);
        again = false;
    }
    if (again) {
        complete(c);
        c->retry_at = now + retry_pause(c->tries++);
        c->state = MFS_CHUNK_DELAYED;
        TAILQ_INSERT_TAIL(&wb->delayed, c, link);
        mfs_workers_hurry(&wb->senders);
    }
    pthread_mutex_unlock(&wb->lock);
    return again;
}

void mfs_wb_declare_full(struct mfs_writeback *wb, uint32_t part)
{
    pthread_mutex_lock(&wb->lock);
    declare_full(wb, part, mfs_clock_mono());
    pthread_mutex_unlock(&wb->lock);
}

bool mfs_wb_full_since(struct mfs_writeback *wb, uint32_t part, int64_t since)
{
    int64_t now = mfs_clock_mono(), until;

    if (atomic_load(&wb->full_until) <= now)
        return false;
    pthread_mutex_lock(&wb->lock);
    until = wb->parts[part].full_until;
    pthread_mutex_unlock(&wb->lock);
    return until > now && until - FULL_TELL >= since;
}

/* A writer that goes on is not to wait anew each second, as long as the partition itself says no: a
 * mapping that is larger than the memory is written back with hundreds of requests, and looks hung
 * else. Where memory may come all wait for it. */
static void stays_full(struct mfs_writeback *wb, uint32_t part)
{
    int64_t until = mfs_clock_mono() + FULL_TELL;
    struct mfs_wb_part *p = &wb->parts[part];

    if (mfs_store_full_wait(wb->store) > 0)
        return;
    pthread_mutex_lock(&wb->lock);
    if (p->full_until) {
        p->full_until = until;
        atomic_store(&wb->full_until, until);
    }
    pthread_mutex_unlock(&wb->lock);
}

bool mfs_wb_still_full(struct mfs_writeback *wb, uint32_t part)
{
    if (!mfs_wb_full_since(wb, part, 0))
        return false;
    if (mfs_stripes_room(wb->store, part) == -ENOSPC) {
        stays_full(wb, part);
        return true;
    }
    pthread_mutex_lock(&wb->lock);
    wb->parts[part].full_until = 0;
    pthread_mutex_unlock(&wb->lock);
    return false;
}

void mfs_writeback_freed(struct mfs_writeback *wb)
{
    if (!atomic_load(&wb->full_until))
        return;
    pthread_mutex_lock(&wb->lock);
    for (uint32_t i = 0; i < wb->nparts; i++)
        wb->parts[i].full_until = 0;
    atomic_store(&wb->full_until, 0);
    pthread_mutex_unlock(&wb->lock);
}

/* --- windows --- */

/* Has this file's idle chunks sent, oldest first, until so many bytes are on their way. */
static void queue_of_file(struct mfs_dirty *d, size_t bytes)
{
    struct mfs_chunk *c;
    size_t done = 0;

    TAILQ_FOREACH(c, &d->chunks, in_file)
    {
        if (done >= bytes)
            return;
        if (c->state == MFS_CHUNK_IDLE) {
            done += c->cap;
            enqueue(c);
        }
    }
}

/* The same of the oldest idle chunks of all files. */
static void queue_oldest(struct mfs_writeback *wb, size_t bytes)
{
    size_t done = 0;

    while (done < bytes && !TAILQ_EMPTY(&wb->idle)) {
        done += TAILQ_FIRST(&wb->idle)->cap;
        enqueue(TAILQ_FIRST(&wb->idle));
    }
}

/* A file may hold so many times what is free: a few that wait for slow partitions leave room
 * for others, and one alone has most of the window. With n such files a 1/(2n + 1) of it stays
 * free. */
#define FILE_TIMES_FREE 2
#define FILE_STRIPES    4 /* but this much any file may */

/* wb->lock is held. */
static bool has_room(const struct mfs_dirty *d, size_t need)
{
    const struct mfs_writeback *wb = d->wb;
    size_t bytes = d->bytes + need;

    if (wb->bytes + need > wb->opts.max_bytes || bytes > wb->opts.max_file_bytes)
        return false;
    return bytes <= FILE_STRIPES * (size_t)wb->stripe_size ||
           bytes <= FILE_TIMES_FREE * (wb->opts.max_bytes - wb->bytes);
}

bool mfs_wb_reserve(struct mfs_dirty *d, size_t need)
{
    struct mfs_writeback *wb = d->wb;
    size_t max = wb->opts.max_bytes, max_file = wb->opts.max_file_bytes;
    bool fits;

    pthread_mutex_lock(&wb->lock);
    fits = has_room(d, need);
    if (!fits)
        queue_of_file(d, need > max_file / 8 ? need : max_file / 8);
    if (wb->bytes + need > max)
        queue_oldest(wb, need > max / 8 ? need : max / 8);
    else if (wb->bytes > max / 4 * 3 && wb->idle_bytes > max / 4)
        queue_oldest(wb, wb->idle_bytes - max / 4);
    if (fits) {
        wb->bytes += need;
        mfs_workers_attend(&wb->senders);
        d->bytes += need;
    }
    pthread_mutex_unlock(&wb->lock);
    return fits;
}

/* wb->lock is held. */
static void release(struct mfs_dirty *d, size_t bytes)
{
    struct mfs_writeback *wb = d->wb;

    assert(bytes <= d->bytes && d->bytes <= wb->bytes);
    wb->bytes -= bytes;
    d->bytes -= bytes;
    if (wb->waiters)
        pthread_cond_broadcast(&wb->room);
}

void mfs_wb_release(struct mfs_dirty *d, size_t bytes)
{
    pthread_mutex_lock(&d->wb->lock);
    release(d, bytes);
    pthread_mutex_unlock(&d->wb->lock);
}

void mfs_wb_resize(struct mfs_chunk *c, size_t cap)
{
    struct mfs_writeback *wb = c->d->wb;

    pthread_mutex_lock(&wb->lock);
    if (c->state == MFS_CHUNK_IDLE)
        wb->idle_bytes += cap - c->cap;
    release(c->d, c->cap);
    c->cap = cap;
    pthread_mutex_unlock(&wb->lock);
}

int mfs_wb_wait_room(struct mfs_dirty *d, size_t need, int64_t until)
{
    struct mfs_writeback *wb = d->wb;
    int64_t now = mfs_clock_mono();

    if (now >= until) {
        mfs_error("data", "no room for written data: the partitions do not take what is waiting");
        return atomic_load(&wb->full_until) > now - FULL_TELL ? -ENOSPC : -EIO;
    }
    pthread_mutex_lock(&wb->lock);
    wb->waiters++;
    mfs_phase_begin(atomic_load(&wb->full_until) > now ? MFS_PHASE_ROOM : MFS_PHASE_WINDOW, 0, now);
    if (!has_room(d, need))
        mfs_cond_wait(&wb->room, &wb->lock, 100 * MFS_MSEC);
    wb->waiters--;
    pthread_mutex_unlock(&wb->lock);
    until = mfs_clock_mono();
    mfs_phase_end(0, until);
    mfs_metric_observe(wb->metrics, MFS_WB_WINDOW_TIME, 0, until - now);
    return 0;
}

/* --- what senders do next: wb->lock is held --- */

/* What goes to a slow node first, as long as its link has room: what it has to carry takes longest.
 */
static struct mfs_wb_part *next_ready(struct mfs_writeback *wb, int64_t now)
{
    struct mfs_wb_part *p, *first = NULL;

    TAILQ_FOREACH(p, &wb->ready, ready)
    {
        uint32_t part = (uint32_t)(p - wb->parts);
        bool slow = mfs_links_is_slow(&wb->links, part);

        if ((first && !slow) || !mfs_links_room(&wb->links, part, now))
            continue;
        if (slow)
            return p;
        first = p;
    }
    return first;
}

/* A batch is a stripe, or several small chunks up to the size of one. */
size_t mfs_wb_pop_batch(struct mfs_writeback *wb, struct mfs_chunk **batch)
{
    int64_t now = mfs_clock_mono();
    struct mfs_wb_part *p;
    size_t bytes = 0, n = 0;

    wb->senders.base = mfs_links_width(&wb->links);
    if (TAILQ_EMPTY(&wb->ready) || !mfs_workers_may_begin(&wb->senders, now))
        return 0;
    mfs_links_follow(&wb->links);
    while (n < MFS_WB_BATCH && (p = next_ready(wb, now))) {
        struct mfs_chunk *c = TAILQ_FIRST(&p->queue);

        if (n && bytes + c->cap > wb->stripe_size)
            break;
        bytes += c->cap;
        take(c);
        batch[n++] = c;
        if (p->is_ready) {
            TAILQ_REMOVE(&wb->ready, p, ready);
            TAILQ_INSERT_TAIL(&wb->ready, p, ready);
        }
    }
    return n;
}

void mfs_wb_wake_old(struct mfs_writeback *wb, int64_t now)
{
    struct mfs_chunk *c;

    while ((c = TAILQ_FIRST(&wb->idle)) && now - c->dirtied_at >= wb->opts.max_age)
        enqueue(c);
    while ((c = TAILQ_FIRST(&wb->delayed)) && c->retry_at <= now)
        enqueue(c);
}
