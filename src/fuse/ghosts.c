#include "fuse/ghosts.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"

#define SLOTS 16384U
#define LOCKS 64U

struct mfs_ghosts {
    pthread_mutex_t lock[LOCKS]; /* slot i is guarded by lock[i % LOCKS]; leaves */
    struct mfs_attr slot[SLOTS];
};

struct mfs_ghosts *mfs_ghosts_create(void)
{
    struct mfs_ghosts *g = calloc(1, sizeof *g);

    for (unsigned i = 0; g != NULL && i < LOCKS; i++)
        pthread_mutex_init(&g->lock[i], NULL);
    return g;
}

void mfs_ghosts_destroy(struct mfs_ghosts *g)
{
    for (unsigned i = 0; g != NULL && i < LOCKS; i++)
        pthread_mutex_destroy(&g->lock[i]);
    free(g);
}

static struct mfs_attr *lock_slot(struct mfs_ghosts *g, uint64_t ino, pthread_mutex_t **lock)
{
    uint64_t i = mfs_hash64(&ino, sizeof ino, 0) % SLOTS;

    *lock = &g->lock[i % LOCKS];
    pthread_mutex_lock(*lock);
    return &g->slot[i];
}

void mfs_ghosts_remember(struct mfs_ghosts *g, const struct mfs_attr *attr)
{
    pthread_mutex_t *lock;
    struct mfs_attr *slot = lock_slot(g, attr->ino, &lock);

    *slot = *attr;
    pthread_mutex_unlock(lock);
}

bool mfs_ghosts_recall(struct mfs_ghosts *g, uint64_t ino, struct mfs_attr *attr)
{
    pthread_mutex_t *lock;
    struct mfs_attr *slot = lock_slot(g, ino, &lock);
    bool known = slot->ino == ino;

    if (known)
        *attr = *slot;
    pthread_mutex_unlock(lock);
    attr->nlink = 0;
    return known;
}
