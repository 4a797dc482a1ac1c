#include "base/threads/ticker.h"

#include <errno.h>

#include "base/threads/thread.h"

static void *ticker_run(void *arg)
{
    struct mfs_ticker *t = arg;

    pthread_mutex_lock(&t->mutex);
    while (!t->stop) {
        if (!t->due && mfs_cond_wait(&t->cond, &t->mutex, t->interval) != -ETIMEDOUT)
            continue;
        t->due = false;
        pthread_mutex_unlock(&t->mutex);
        t->tick(t->arg);
        pthread_mutex_lock(&t->mutex);
    }
    pthread_mutex_unlock(&t->mutex);
    return NULL;
}

int mfs_ticker_start(struct mfs_ticker *t, const char *name, int64_t interval,
                     void (*tick)(void *arg), void *arg)
{
    int rc;

    t->interval = interval;
    t->tick = tick;
    t->arg = arg;
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
    pthread_cond_destroy(&t->cond);
    pthread_mutex_destroy(&t->mutex);
    t->started = false;
}
