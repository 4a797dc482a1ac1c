#include "base/threads/ticker.h"

#include <errno.h>

#include "base/clock.h"
#include "base/threads/thread.h"

/* Mutex held, and given up meanwhile. True: tick is to be called now. */
static bool wait_for_turn(struct mfs_ticker *t)
{
    int64_t wait = t->interval;

    if (t->rests && !atomic_load(&t->work)) {
        if (!t->again) {
            pthread_cond_wait(&t->cond, &t->mutex);
            return false;
        }
        wait = t->again - mfs_clock_mono();
    }
    return mfs_cond_wait(&t->cond, &t->mutex, wait) == -ETIMEDOUT;
}

static void *ticker_run(void *arg)
{
    struct mfs_ticker *t = arg;

    pthread_mutex_lock(&t->mutex);
    while (!t->stop) {
        if (!t->due && !wait_for_turn(t))
            continue;
        t->due = false;
        t->again = 0;
        atomic_store(&t->work, false); /* what is told from here on, that call may miss */
        pthread_mutex_unlock(&t->mutex);
        t->tick(t->arg);
        pthread_mutex_lock(&t->mutex);
    }
    pthread_mutex_unlock(&t->mutex);
    return NULL;
}

/* The thread's first look comes after `started`: what its call tells is not taken for that of one
 * that was never started. */
static int start(struct mfs_ticker *t, const char *name, int64_t interval, void (*tick)(void *arg),
                 void *arg)
{
    int rc;

    t->interval = interval;
    t->tick = tick;
    t->arg = arg;
    pthread_mutex_init(&t->mutex, NULL);
    rc = mfs_cond_init(&t->cond);
    if (!rc) {
        pthread_mutex_lock(&t->mutex);
        rc = mfs_thread_start(&t->thread, name, ticker_run, t);
        t->started = !rc;
        pthread_mutex_unlock(&t->mutex);
        if (rc)
            pthread_cond_destroy(&t->cond);
    }
    if (rc)
        pthread_mutex_destroy(&t->mutex);
    return rc;
}

int mfs_ticker_start(struct mfs_ticker *t, const char *name, int64_t interval,
                     void (*tick)(void *arg), void *arg)
{
    t->rests = false;
    return start(t, name, interval, tick, arg);
}

int mfs_ticker_start_resting(struct mfs_ticker *t, const char *name, int64_t interval,
                             void (*tick)(void *arg), void *arg)
{
    t->rests = true;
    atomic_store(&t->work, true);
    return start(t, name, interval, tick, arg);
}

/* Without the mutex: whoever finds `work` set did so before the next call began, which therefore
 * comes after what the caller has done. */
void mfs_ticker_work(struct mfs_ticker *t)
{
    if (!t->started || !t->rests || atomic_load(&t->work))
        return;
    pthread_mutex_lock(&t->mutex);
    atomic_store(&t->work, true);
    pthread_cond_signal(&t->cond);
    pthread_mutex_unlock(&t->mutex);
}

void mfs_ticker_again(struct mfs_ticker *t, int64_t ns)
{
    t->again = mfs_clock_mono() + ns;
}

void mfs_ticker_hurry(struct mfs_ticker *t)
{
    if (!t->started)
        return;
    pthread_mutex_lock(&t->mutex);
    t->due = true;
    pthread_cond_signal(&t->cond);
    pthread_mutex_unlock(&t->mutex);
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
    t->started = false; /* the mutex stays, for a thread that has found it started */
}
