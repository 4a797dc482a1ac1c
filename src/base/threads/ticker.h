/* A thread that does something every so often until it is stopped, or only while there is something
 * to do: a program that nobody uses is not to wake a processor that others compute on. */
#ifndef MFS_BASE_THREADS_TICKER_H
#define MFS_BASE_THREADS_TICKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* All zeros: not started. The fields are ticker.c's. */
struct mfs_ticker {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    atomic_bool started;
    bool stop;        /* under mutex, … */
    bool due;         /* … as is this: not to wait for the interval */
    atomic_bool work; /* for one that rests, set under mutex: see mfs_ticker_work */
    bool rests;
    int64_t interval; /* ns */
    int64_t again; /* mono, the thread's own: it looks then, though nobody told of work; 0: not */
    void (*tick)(void *arg);
    void *arg;
};

/* Calls tick(arg) every `interval` ns from now on, never twice at once. `name` as for
 * mfs_thread_start. 0 or a negative errno. */
int mfs_ticker_start(struct mfs_ticker *t, const char *name, int64_t interval,
                     void (*tick)(void *arg), void *arg);

/* The same, but tick(arg) is called only after mfs_ticker_work, which counts as called once at the
 * start: within `interval` ns of the first one since the last call began. In between the thread
 * sleeps. What is left after a call, that call tells. */
int mfs_ticker_start_resting(struct mfs_ticker *t, const char *name, int64_t interval,
                             void (*tick)(void *arg), void *arg);

/* There is something to do. What the caller has done before, the next call of tick sees. Any
 * thread, tick itself too; does not block, and costs next to nothing when it was called already.
 * Nothing when it was not started, or does not rest. */
void mfs_ticker_work(struct mfs_ticker *t);

/* For tick itself: it is to be called again `ns` from now if nobody tells of work before. */
void mfs_ticker_again(struct mfs_ticker *t, int64_t ns);

/* The next call begins at once, or when the one that is under way has returned. Any thread, does
 * not block; nothing when it was not started. */
void mfs_ticker_hurry(struct mfs_ticker *t);

/* Waits for a call that is under way. Does nothing when it was not started, or twice. Until the
 * memory is given up, others may still tell of work, in vain. */
void mfs_ticker_stop(struct mfs_ticker *t);

#endif
