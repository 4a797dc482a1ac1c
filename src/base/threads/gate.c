#include "base/threads/gate.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/threads/thread.h"

struct mfs_gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    unsigned users; /* under lock, as is what follows */
    bool open;
};

struct mfs_gate *mfs_gate_create(void)
{
    struct mfs_gate *g = calloc(1, sizeof *g);

    if (!g)
        return NULL;
    if (mfs_cond_init(&g->opened)) {
        free(g);
        return NULL;
    }
    pthread_mutex_init(&g->lock, NULL);
    g->users = 2;
    return g;
}

/* Unlocks it, too. */
static void put(struct mfs_gate *g)
{
    bool last = --g->users == 0;

    pthread_mutex_unlock(&g->lock);
    if (!last)
        return;
    pthread_cond_destroy(&g->opened);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

void mfs_gate_open(void *gate)
{
    struct mfs_gate *g = gate;

    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_signal(&g->opened);
    put(g);
}

bool mfs_gate_wait(struct mfs_gate *g, int64_t most)
{
    int64_t end = mfs_clock_mono() + most, left = most;
    bool open;

    pthread_mutex_lock(&g->lock);
    while (!g->open && left > 0) {
        mfs_cond_wait(&g->opened, &g->lock, left);
        left = end - mfs_clock_mono();
    }
    open = g->open;
    put(g);
    return open;
}
