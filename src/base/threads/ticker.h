/* A thread that does something every so often until it is stopped. */
#ifndef MFS_BASE_THREADS_TICKER_H
#define MFS_BASE_THREADS_TICKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* All zeros: not started. The fields are ticker.c's. */
struct mfs_ticker {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool started, stop; /* under mutex, … */
    bool due;           /* … as is this: not to wait for the interval */
    int64_t interval;   /* ns */
    void (*tick)(void *arg);
    void *arg;
};

/* Calls tick(arg) every `interval` ns from now on, never twice at once. `name` as for
 * mfs_thread_start. 0 or a negative errno. */
int mfs_ticker_start(struct mfs_ticker *t, const char *name, int64_t interval,
                     void (*tick)(void *arg), void *arg);

/* The next call begins at once, or when the one that is under way has returned. Any thread, does
 * not block; nothing when it was not started. */
void mfs_ticker_hurry(struct mfs_ticker *t);

/* Waits for a call that is under way. Does nothing when it was not started, or twice. */
void mfs_ticker_stop(struct mfs_ticker *t);

#endif
