/* A pool of worker threads for jobs that may take long, such as storing a stripe. So many workers
 * are at work at once, and a worker that has been at its job for much longer than usual is not
 * counted. So a partition that does not answer holds only the workers that wait for it; others take
 * their place, up to a bound.
 *
 * A worker is busy, idle, or the *watcher*: the pool always has one worker more than are counted.
 * It waits, looks at the clock, and takes a job when there is one and the busy workers count no
 * more. When the watcher becomes busy, an idle worker becomes the watcher, or a new one is started.
 *
 * In all functions but fini the owner's lock is held. Internal to src/data. */
#ifndef MFS_DATA_WORKERS_WORKERS_H
#define MFS_DATA_WORKERS_WORKERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define MFS_WORKERS_LONG (30 * MFS_MSEC) /* a worker that is busy for less is always counted */

struct mfs_workers {
    const char *name;
    void *(*run)(void *arg); /* of each worker; calls mfs_workers_enter first */
    void *arg;
    pthread_mutex_t *lock; /* the owner's */
    uint32_t base;         /* counted at once; the owner may change it */
    uint32_t most;         /* workers */
    uint32_t n, entered;
    pthread_cond_t idle, watcher; /* all that wait but one; and that one */
    uint32_t idle_count;
    bool quiet;   /* nothing has come since the watcher last began a wait … */
    bool rests;   /* … and so it waits for longer than it was told to */
    double usual; /* ns that a job takes, the last ones counting most */
    bool has_watcher;
    pthread_t *threads;
    int64_t *since; /* by number: when its job began; 0: not busy */
};

/* The fields up to `base` are set. Starts `base` threads; 0 or -errno. */
int mfs_workers_start(struct mfs_workers *workers);
/* Waits for the end of all threads, which the owner has told to stop; no lock is held. */
void mfs_workers_fini(struct mfs_workers *workers);

uint32_t mfs_workers_enter(struct mfs_workers *workers); /* the calling thread's number */

/* May one more begin? */
bool mfs_workers_may_begin(const struct mfs_workers *workers, int64_t now);
void mfs_workers_begin(struct mfs_workers *workers, uint32_t number, int64_t now);
void mfs_workers_end(struct mfs_workers *workers, uint32_t number, int64_t now);

/* There is a job: wakes a worker that waits, if it may begin. The watcher last, as another would
 * have to take its place. */
void mfs_workers_wake(struct mfs_workers *workers);
/* There is something that the watcher has to look after by the clock. Costs nothing while it does:
 * only one that rests is woken. */
void mfs_workers_attend(struct mfs_workers *workers);
/* The watcher has to look at the clock earlier than it meant to. */
void mfs_workers_hurry(struct mfs_workers *workers);
/* Waits for a job; the watcher, which the caller becomes if there is none, `brief` ns at most. With
 * `nothing` to look after by the clock it rests, once a brief wait has passed without a call of
 * mfs_workers_attend or mfs_workers_begin, which end its rest. */
void mfs_workers_wait(struct mfs_workers *workers, int64_t brief, bool nothing);

#endif
