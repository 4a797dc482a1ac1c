/* A thread that does one thing again and again, and the short waits for other clients. */
#include "meta/internal.h"

#include <errno.h>
#include <sys/random.h>

#include "base/thread.h"

static void *ticker_run(void *arg)
{
    struct mfs_ticker *t = arg;

    pthread_mutex_lock(&t->mutex);
    while (!t->stop) {
        if (mfs_cond_wait(&t->cond, &t->mutex, t->interval) != -ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&t->mutex);
        t->tick(t->meta);
        pthread_mutex_lock(&t->mutex);
    }
    pthread_mutex_unlock(&t->mutex);
    return NULL;
}

int mfs_ticker_start(struct mfs_ticker *t, const char *name, int64_t interval,
                     void (*tick)(struct mfs_meta *meta), struct mfs_meta *meta)
{
    int rc;

    t->interval = interval;
    t->tick = tick;
    t->meta = meta;
    pthread_mutex_init(&t->mutex, NULL);
    rc = mfs_cond_init(&t->cond);
    if (!rc) {
        rc = mfs_thread_start(&t->thread, name, ticker_run, t);
        if (rc)
            pthread_cond_destroy(&t->cond);
    }
    if (rc)
        pthread_mutex_destroy(&t->mutex);
    t->started = !rc;
    return rc;
}

void mfs_ticker_stop(struct mfs_ticker *t)
{
    if (!t->started)
        return;
    pthread_mutex_lock(&t->mutex);
    t->stop = true;
    pthread_cond_signal(&t->cond);
    pthread_mutex_unlock(&t->mutex);
    pthread_join(t->thread, NULL);
    pthread_cond_destroy(&t->cond);
    pthread_mutex_destroy(&t->mutex);
    t->started = false;
}

#define WAIT_FIRST (50 * MFS_MSEC / 1000)
#define WAIT_LAST  (20 * MFS_MSEC)

bool mfs_patience_wait(const struct mfs_meta *meta, struct mfs_patience *p)
{
    int64_t now = mfs_clock_mono(), wait;
    uint32_t jitter = 0;

    if (!p->since)
        p->since = now;
    if (now - p->since > meta->limits.patience)
        return false;
    wait = WAIT_FIRST << (p->n < 9 ? p->n : 9);
    p->n++;
    if (wait > WAIT_LAST)
        wait = WAIT_LAST;
    if (getrandom(&jitter, sizeof jitter, GRND_NONBLOCK) < 0)
        jitter = (uint32_t)now;
    mfs_clock_sleep(wait / 2 + (int64_t)(jitter % 1000) * wait / 1000);
    return true;
}
