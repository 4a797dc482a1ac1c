/* Invariants, with the owner's lock held: at most one worker is the watcher; a worker that is busy
 * has since[number] set, an idle one has not; n never shrinks, and stays within `most`. */
#include "data/workers/workers.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/threads/thread.h"

#define MOST_TIMES 4U  /* workers: so many times those that are counted, … */
#define MOST       64U /* … but no more */
#define LONG_TIMES 4.0 /* what is usual: a worker that is busy for longer is not counted */
#define USUAL_OF   16.0
#define SLEEP      (60 * MFS_SEC)

static int start_thread(struct mfs_workers *workers)
{
    int rc =
        mfs_thread_start(&workers->threads[workers->n], workers->name, workers->run, workers->arg);

    workers->n += !rc;
    return rc;
}

int mfs_workers_start(struct mfs_workers *workers)
{
    int rc = 0;

    workers->most = workers->base * MOST_TIMES < MOST ? workers->base * MOST_TIMES : MOST;
    if (workers->most <= workers->base)
        workers->most = workers->base + 1;
    workers->threads = calloc(workers->most, sizeof *workers->threads);
    workers->since = calloc(workers->most, sizeof *workers->since);
    if (!workers->threads || !workers->since)
        return -ENOMEM;
    mfs_cond_init(&workers->idle);
    mfs_cond_init(&workers->watcher);
    while (workers->n < workers->base && !rc)
        rc = start_thread(workers);
    return workers->n ? 0 : rc;
}

void mfs_workers_fini(struct mfs_workers *workers)
{
    if (workers->n) {
        pthread_mutex_lock(workers->lock);
        pthread_cond_broadcast(&workers->idle);
        pthread_cond_broadcast(&workers->watcher);
        pthread_mutex_unlock(workers->lock);
    }
    for (uint32_t i = 0; i < workers->n; i++)
        pthread_join(workers->threads[i], NULL);
    if (workers->threads && workers->since) {
        pthread_cond_destroy(&workers->idle);
        pthread_cond_destroy(&workers->watcher);
    }
    free(workers->threads);
    free(workers->since);
}

uint32_t mfs_workers_enter(struct mfs_workers *workers)
{
    return workers->entered++;
}

bool mfs_workers_may_begin(const struct mfs_workers *workers, int64_t now)
{
    int64_t usual = (int64_t)(LONG_TIMES * workers->usual);
    int64_t limit = usual > MFS_WORKERS_LONG ? usual : MFS_WORKERS_LONG;
    uint32_t counted = 0;

    for (uint32_t i = 0; i < workers->n; i++)
        counted += workers->since[i] && now - workers->since[i] < limit;
    return counted < workers->base;
}

/* A worker that can't be started is no error: the others go on. */
void mfs_workers_begin(struct mfs_workers *workers, uint32_t number, int64_t now)
{
    assert(number < workers->most && !workers->since[number] && now);
    workers->since[number] = now;
    mfs_workers_attend(workers);
    if (workers->has_watcher)
        return;
    if (workers->idle_count)
        pthread_cond_signal(&workers->idle); /* becomes the watcher */
    else if (workers->n < workers->most)
        (void)start_thread(workers);
}

void mfs_workers_end(struct mfs_workers *workers, uint32_t number, int64_t now)
{
    assert(number < workers->most && workers->since[number]);
    workers->usual += ((double)(now - workers->since[number]) - workers->usual) / USUAL_OF;
    workers->since[number] = 0;
}

void mfs_workers_wake(struct mfs_workers *workers)
{
    if ((!workers->idle_count && !workers->has_watcher) ||
        !mfs_workers_may_begin(workers, mfs_clock_mono()))
        return;
    pthread_cond_signal(workers->idle_count ? &workers->idle : &workers->watcher);
}

void mfs_workers_attend(struct mfs_workers *workers)
{
    workers->quiet = false;
    if (!workers->rests)
        return;
    workers->rests = false;
    pthread_cond_signal(&workers->watcher);
}

void mfs_workers_hurry(struct mfs_workers *workers)
{
    pthread_cond_signal(&workers->watcher);
}

static bool any_busy(const struct mfs_workers *workers)
{
    for (uint32_t i = 0; i < workers->n; i++)
        if (workers->since[i])
            return true;
    return false;
}

void mfs_workers_wait(struct mfs_workers *workers, int64_t brief, bool nothing)
{
    if (!workers->has_watcher) {
        workers->has_watcher = true;
        workers->rests = nothing && workers->quiet && !any_busy(workers);
        workers->quiet = true;
        mfs_cond_wait(&workers->watcher, workers->lock, workers->rests ? SLEEP : brief);
        workers->rests = false;
        workers->has_watcher = false;
    } else {
        workers->idle_count++;
        mfs_cond_wait(&workers->idle, workers->lock, SLEEP);
        workers->idle_count--;
    }
}
