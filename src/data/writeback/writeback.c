/* Write-behind as a whole: the threads that send chunks and commit files behind the writers' backs.
 * One of the senders that wait also looks at the clock, a few times per max_age, for chunks and
 * commits that are old enough; it need not be woken for that, as a small file's write must not
 * cost a thread switch. Only when for such a pause nothing was written does it rest, and the next
 * write wakes it. */
#include "data/writeback/writeback_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/threads/thread.h"

#define THREADS_DEFAULT   4U
#define MAX_DEFAULT       ((size_t)128 << 20)
#define MAX_FILE_DEFAULT  ((size_t)32 << 20)
#define MAX_AGE_DEFAULT   (1 * MFS_SEC)
#define FULL_WAIT_DEFAULT (2 * MFS_SEC)
#define KEEP_WARM         ((size_t)32 << 20)

/* --- commits that are due --- */

void mfs_wb_commit_at(struct mfs_dirty *d, int64_t at)
{
    struct mfs_writeback *wb = d->wb;
    bool now = at <= mfs_clock_mono();

    pthread_mutex_lock(&wb->lock);
    if (!d->is_due || at < d->due_at)
        d->due_at = at;
    if (d->is_due && now)
        TAILQ_REMOVE(&wb->due, d, due);
    if (now)
        TAILQ_INSERT_HEAD(&wb->due, d, due);
    else if (!d->is_due)
        TAILQ_INSERT_TAIL(&wb->due, d, due);
    d->is_due = true;
    mfs_workers_attend(&wb->senders);
    if (now)
        mfs_workers_wake(&wb->senders);
    pthread_mutex_unlock(&wb->lock);
}

void mfs_wb_commit_never(struct mfs_dirty *d)
{
    struct mfs_writeback *wb = d->wb;

    pthread_mutex_lock(&wb->lock);
    wb->waiters++;
    while (d->commit_busy)
        mfs_cond_wait(&wb->room, &wb->lock, MFS_SEC);
    wb->waiters--;
    if (d->is_due) /* also when it was made so by the one that was waited for */
        TAILQ_REMOVE(&wb->due, d, due);
    d->is_due = false;
    pthread_mutex_unlock(&wb->lock);
}

static struct mfs_dirty *pop_due(struct mfs_writeback *wb, int64_t now)
{
    struct mfs_dirty *d = TAILQ_FIRST(&wb->due);

    if (!d || d->due_at > now)
        return NULL;
    TAILQ_REMOVE(&wb->due, d, due);
    d->is_due = false;
    d->commit_busy++;
    return d;
}

/* --- senders: wb->lock is held --- */

static int64_t sender_pause(struct mfs_writeback *wb, int64_t now)
{
    int64_t pause = wb->opts.max_age / 4;

    if (!TAILQ_EMPTY(&wb->delayed) && TAILQ_FIRST(&wb->delayed)->retry_at - now < pause)
        pause = TAILQ_FIRST(&wb->delayed)->retry_at - now;
    if (!TAILQ_EMPTY(&wb->ready) && pause > MFS_WORKERS_LONG)
        pause = MFS_WORKERS_LONG; /* by then those at work may count no more */
    return pause > MFS_MSEC ? pause : MFS_MSEC;
}

static void commit_due(struct mfs_writeback *wb, struct mfs_dirty *d)
{
    pthread_mutex_unlock(&wb->lock);
    mfs_dirty_commit_behind(d);
    pthread_mutex_lock(&wb->lock);
    assert(d->commit_busy > 0);
    d->commit_busy--;
    if (wb->waiters)
        pthread_cond_broadcast(&wb->room);
}

/* Commits or sends something; false when there is nothing to do. */
static bool work(struct mfs_writeback *wb, uint32_t number, int64_t now)
{
    struct mfs_chunk *batch[MFS_WB_BATCH];
    struct mfs_dirty *d = pop_due(wb, now);
    size_t n = d ? 0 : mfs_wb_pop_batch(wb, batch);

    if (!d && !n)
        return false;
    mfs_workers_begin(&wb->senders, number, now);
    if (d) {
        commit_due(wb, d);
    } else {
        pthread_mutex_unlock(&wb->lock);
        mfs_wb_send(wb, batch, n);
        pthread_mutex_lock(&wb->lock);
    }
    mfs_workers_end(&wb->senders, number, mfs_clock_mono());
    return true;
}

static void *sender(void *arg)
{
    struct mfs_writeback *wb = arg;
    uint32_t number;

    pthread_mutex_lock(&wb->lock);
    number = mfs_workers_enter(&wb->senders);
    while (!wb->stop) {
        int64_t now = mfs_clock_mono();

        mfs_wb_wake_old(wb, now);
        if (!work(wb, number, now))
            mfs_workers_wait(&wb->senders, sender_pause(wb, now),
                             wb->bytes == 0 && TAILQ_EMPTY(&wb->due));
    }
    pthread_mutex_unlock(&wb->lock);
    return NULL;
}

/* --- life --- */

static void set_defaults(struct mfs_writeback *wb, const struct mfs_writeback_opts *opts)
{
    struct mfs_writeback_opts *o = &wb->opts;
    size_t least = 4 * (size_t)wb->stripe_size;

    if (opts)
        *o = *opts;
    if (!o->threads)
        o->threads = THREADS_DEFAULT;
    if (!o->max_bytes)
        o->max_bytes = MAX_DEFAULT;
    if (!o->max_file_bytes)
        o->max_file_bytes = MAX_FILE_DEFAULT;
    if (!o->max_age)
        o->max_age = MAX_AGE_DEFAULT;
    if (!o->full_wait)
        o->full_wait = FULL_WAIT_DEFAULT;
    /* Less could not hold one chunk while it is copied to a larger buffer, and others beside it. */
    if (o->max_bytes < 2 * least)
        o->max_bytes = 2 * least;
    if (o->max_file_bytes < least)
        o->max_file_bytes = least;
    if (o->max_file_bytes > o->max_bytes)
        o->max_file_bytes = o->max_bytes;
}

static int start_senders(struct mfs_writeback *wb)
{
    int rc;

    pthread_mutex_lock(&wb->lock);
    wb->senders = (struct mfs_workers){
        .name = "mfs-send", .run = sender, .arg = wb, .lock = &wb->lock, .base = wb->opts.threads};
    rc = mfs_workers_start(&wb->senders);
    pthread_mutex_unlock(&wb->lock);
    return rc;
}

static const struct mfs_metric metrics[MFS_WB_METRICS] = {
    [MFS_WB_WINDOW_TIME] = {.name = "memefs_write_window_wait_seconds",
                            .help = "Times that a writer waited for room in the write window.",
                            .kind = MFS_METRIC_HISTOGRAM},
    [MFS_WB_FAILURES] = {.name = "memefs_write_back_failures_total",
                         .help = "Times that written data, or their commit, could not be stored.",
                         .kind = MFS_METRIC_COUNTER},
    [MFS_WB_LOST] = {.name = "memefs_write_back_lost_bytes_total",
                     .help = "Bytes that programs have written and that could not be stored.",
                     .kind = MFS_METRIC_COUNTER}};

int mfs_writeback_create(struct mfs_writeback **out, struct mfs_store *store,
                         const struct mfs_writeback_opts *opts)
{
    struct mfs_writeback *wb = calloc(1, sizeof *wb);
    size_t keep;
    int rc = -ENOMEM;

    if (!wb)
        return rc;
    wb->store = store;
    wb->stripe_size = mfs_store_stripe_size(store);
    wb->nparts = mfs_store_nparts(store);
    set_defaults(wb, opts);
    pthread_mutex_init(&wb->lock, NULL);
    mfs_cond_init(&wb->room);
    TAILQ_INIT(&wb->idle);
    TAILQ_INIT(&wb->delayed);
    TAILQ_INIT(&wb->ready);
    TAILQ_INIT(&wb->due);
    wb->parts = calloc(wb->nparts, sizeof *wb->parts);
    keep = wb->opts.max_bytes / 2 < KEEP_WARM ? wb->opts.max_bytes / 2 : KEEP_WARM;
    if (!wb->parts || mfs_links_init(&wb->links, store, wb->opts.threads) ||
        mfs_bufs_create(&wb->bufs, wb->stripe_size, keep) ||
        mfs_metric_set_create(&wb->metrics, wb->opts.metrics, metrics, MFS_WB_METRICS))
        goto out;
    for (uint32_t i = 0; i < wb->nparts; i++)
        TAILQ_INIT(&wb->parts[i].queue);
    rc = start_senders(wb);
out:
    if (rc) {
        mfs_writeback_destroy(wb);
        wb = NULL;
    }
    *out = wb;
    return rc;
}

void mfs_writeback_destroy(struct mfs_writeback *wb)
{
    if (!wb)
        return;
    pthread_mutex_lock(&wb->lock);
    wb->stop = true;
    pthread_mutex_unlock(&wb->lock);
    mfs_workers_fini(&wb->senders);
    mfs_bufs_destroy(wb->bufs);
    mfs_metric_set_destroy(wb->metrics);
    pthread_cond_destroy(&wb->room);
    pthread_mutex_destroy(&wb->lock);
    mfs_links_fini(&wb->links);
    free(wb->parts);
    free(wb);
}
