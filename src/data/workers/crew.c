#include "data/workers/crew.h"

#include <errno.h>
#include <stdlib.h>

#include "base/thread.h"

#define MOST_TIMES 4U  /* threads: so many times those that are wished at work, … */
#define MOST       64U /* … but no more */
#define LONG_TIMES 4.0 /* what is usual, and who works so long is not counted */
#define USUAL_OF   16.0
#define SLEEP      (10 * MFS_SEC)

static int hire(struct mfs_crew *crew)
{
    int rc = mfs_thread_start(&crew->threads[crew->n], crew->name, crew->run, crew->arg);

    crew->n += !rc;
    return rc;
}

int mfs_crew_start(struct mfs_crew *crew)
{
    int rc = 0;

    crew->most = crew->base * MOST_TIMES < MOST ? crew->base * MOST_TIMES : MOST;
    if (crew->most <= crew->base)
        crew->most = crew->base + 1;
    crew->threads = calloc(crew->most, sizeof *crew->threads);
    crew->since = calloc(crew->most, sizeof *crew->since);
    if (!crew->threads || !crew->since)
        return -ENOMEM;
    mfs_cond_init(&crew->idle);
    mfs_cond_init(&crew->clock);
    while (crew->n < crew->base && !rc)
        rc = hire(crew);
    return crew->n ? 0 : rc;
}

void mfs_crew_fini(struct mfs_crew *crew)
{
    if (crew->n) {
        pthread_mutex_lock(crew->lock);
        pthread_cond_broadcast(&crew->idle);
        pthread_cond_broadcast(&crew->clock);
        pthread_mutex_unlock(crew->lock);
    }
    for (uint32_t i = 0; i < crew->n; i++)
        pthread_join(crew->threads[i], NULL);
    if (crew->threads && crew->since) {
        pthread_cond_destroy(&crew->idle);
        pthread_cond_destroy(&crew->clock);
    }
    free(crew->threads);
    free(crew->since);
}

uint32_t mfs_crew_enter(struct mfs_crew *crew)
{
    return crew->entered++;
}

bool mfs_crew_may_begin(const struct mfs_crew *crew, int64_t now)
{
    int64_t usual = (int64_t)(LONG_TIMES * crew->usual);
    int64_t limit = usual > MFS_CREW_LONG ? usual : MFS_CREW_LONG;
    uint32_t counted = 0;

    for (uint32_t i = 0; i < crew->n; i++)
        counted += crew->since[i] && now - crew->since[i] < limit;
    return counted < crew->base;
}

/* That a thread can't be had is no error: all goes on with those there are. */
void mfs_crew_begin(struct mfs_crew *crew, uint32_t number, int64_t now)
{
    crew->since[number] = now;
    if (crew->watched)
        return;
    if (crew->idlers)
        pthread_cond_signal(&crew->idle); /* goes to the clock */
    else if (crew->n < crew->most)
        (void)hire(crew);
}

void mfs_crew_end(struct mfs_crew *crew, uint32_t number, int64_t now)
{
    crew->usual += ((double)(now - crew->since[number]) - crew->usual) / USUAL_OF;
    crew->since[number] = 0;
}

void mfs_crew_wake(struct mfs_crew *crew)
{
    if ((!crew->idlers && !crew->watched) || !mfs_crew_may_begin(crew, mfs_clock_mono()))
        return;
    pthread_cond_signal(crew->idlers ? &crew->idle : &crew->clock);
}

void mfs_crew_hurry(struct mfs_crew *crew)
{
    pthread_cond_signal(&crew->clock);
}

void mfs_crew_wait(struct mfs_crew *crew, int64_t brief)
{
    if (!crew->watched) {
        crew->watched = true;
        mfs_cond_wait(&crew->clock, crew->lock, brief);
        crew->watched = false;
    } else {
        crew->idlers++;
        mfs_cond_wait(&crew->idle, crew->lock, SLEEP);
        crew->idlers--;
    }
}
