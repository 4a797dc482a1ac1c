/* Threads that each work at one thing that may take long, such as storing a stripe: so many at
 * once, and who has been at it for much longer than usual is not counted. So a partition that does
 * not answer keeps only those who wait for it, and others step in, up to a bound.
 *
 * There is always one more than needed: it waits, looks at the clock, and steps in when work is
 * there and those at work count no more. All functions but fini: the owner's lock is held. Internal
 * to src/data. */
#ifndef MFS_DATA_WORKERS_CREW_H
#define MFS_DATA_WORKERS_CREW_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define MFS_CREW_LONG (30 * MFS_MSEC) /* who works less than this at one thing is counted */

struct mfs_crew {
    const char *name;
    void *(*run)(void *arg); /* of each thread; calls mfs_crew_enter first */
    void *arg;
    pthread_mutex_t *lock; /* the owner's */
    uint32_t base;         /* at work at once; the owner may change it */
    uint32_t most;         /* threads */
    uint32_t n, entered;
    pthread_cond_t idle, clock; /* who waits here: all but one, and the one that … */
    uint32_t idlers;
    double usual; /* ns that one thing takes, the last ones counting most */
    bool watched; /* … looks at the clock, if there is one */
    pthread_t *threads;
    int64_t *since; /* by number: when it began what it is at; 0: nothing */
};

/* The fields up to `base` are set. Starts `base` threads; 0 or -errno. */
int mfs_crew_start(struct mfs_crew *crew);
/* Waits for the end of all threads, which the owner has told to stop; no lock is held. */
void mfs_crew_fini(struct mfs_crew *crew);

uint32_t mfs_crew_enter(struct mfs_crew *crew); /* the calling thread's number */

/* May one more begin? */
bool mfs_crew_may_begin(const struct mfs_crew *crew, int64_t now);
void mfs_crew_begin(struct mfs_crew *crew, uint32_t number, int64_t now);
void mfs_crew_end(struct mfs_crew *crew, uint32_t number, int64_t now);

/* There is something to do: wakes one that waits, if it may begin. The one at the clock last, as
 * another would have to take its place. */
void mfs_crew_wake(struct mfs_crew *crew);
/* Who looks at the clock has to look earlier than it meant to. */
void mfs_crew_hurry(struct mfs_crew *crew);
/* Waits for work, or `brief` ns if nobody else looks at the clock. */
void mfs_crew_wait(struct mfs_crew *crew, int64_t brief);

#endif
