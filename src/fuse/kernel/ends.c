#include "fuse/kernel/ends.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"

#define SLOTS 8192U
#define LOCKS 64U

/* For how long a notice makes doubtful what was told: from before the kernel asked until it has
 * looked at the answer. Much more than that takes as a rule, as the machine may be busy. */
#define IN_THE_WAY MFS_SEC

struct slot {
    uint64_t ino;    /* 0: free */
    uint64_t latest; /* the furthest end that was told, or made, since `since` */
    uint64_t before; /* and that may have been believed until then */
    int64_t since;
    uint64_t told; /* last, and when */
    int64_t told_at;
    int64_t noticed; /* the last notice; 0: none */
};

struct mfs_ends {
    pthread_mutex_t lock[LOCKS]; /* slot i is guarded by lock[i % LOCKS]; leaves */
    struct slot slot[SLOTS];
};

struct mfs_ends *mfs_ends_create(void)
{
    struct mfs_ends *e = calloc(1, sizeof *e);

    for (unsigned i = 0; e != NULL && i < LOCKS; i++)
        pthread_mutex_init(&e->lock[i], NULL);
    return e;
}

void mfs_ends_destroy(struct mfs_ends *e)
{
    for (unsigned i = 0; e != NULL && i < LOCKS; i++)
        pthread_mutex_destroy(&e->lock[i]);
    free(e);
}

static struct slot *lock_slot(struct mfs_ends *e, uint64_t ino, pthread_mutex_t **lock)
{
    uint64_t i = mfs_hash64(&ino, sizeof ino, 0) % SLOTS;

    *lock = &e->lock[i % LOCKS];
    pthread_mutex_lock(*lock);
    return &e->slot[i];
}

static uint64_t furthest(const struct slot *s)
{
    return s->latest > s->before ? s->latest : s->before;
}

void mfs_ends_told(struct mfs_ends *e, uint64_t ino, uint64_t size, int64_t now)
{
    pthread_mutex_t *lock;
    struct slot *s = lock_slot(e, ino, &lock);

    if (s->ino != ino) {
        *s = (struct slot){.ino = ino, .latest = size, .since = now};
    } else if (now - s->since > IN_THE_WAY && now - s->noticed > IN_THE_WAY) {
        /* If no notice came near to what was told last, that was believed. */
        s->before = s->noticed < s->since - IN_THE_WAY ? s->latest : furthest(s);
        s->latest = size;
        s->since = now;
    } else if (size > s->latest) {
        s->latest = size;
    }
    s->told = size;
    s->told_at = now;
    pthread_mutex_unlock(lock);
}

void mfs_ends_reach(struct mfs_ends *e, uint64_t ino, uint64_t end)
{
    pthread_mutex_t *lock;
    struct slot *s = lock_slot(e, ino, &lock);

    if (s->ino == ino && end > s->latest)
        s->latest = end;
    pthread_mutex_unlock(lock);
}

bool mfs_ends_grow(struct mfs_ends *e, uint64_t ino, uint64_t end, int64_t seen)
{
    pthread_mutex_t *lock;
    struct slot *s = lock_slot(e, ino, &lock);
    bool grows = s->ino != ino || s->told_at < seen || s->told >= end;

    if (grows && s->ino == ino && end > s->latest)
        s->latest = end;
    pthread_mutex_unlock(lock);
    return grows;
}

void mfs_ends_noticed(struct mfs_ends *e, uint64_t ino, int64_t now)
{
    pthread_mutex_t *lock;
    struct slot *s = lock_slot(e, ino, &lock);

    if (s->ino == ino)
        s->noticed = now;
    pthread_mutex_unlock(lock);
}

bool mfs_ends_doubt(struct mfs_ends *e, uint64_t ino, uint64_t size, int64_t now)
{
    pthread_mutex_t *lock;
    struct slot *s = lock_slot(e, ino, &lock);
    bool doubt =
        s->ino == ino && s->noticed != 0 && now - s->noticed <= IN_THE_WAY && furthest(s) > size;

    pthread_mutex_unlock(lock);
    return doubt;
}
