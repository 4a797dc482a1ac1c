/* A slot per hash of the inode. Invariant, while no other inode takes the slot: the kernel believes
 * no end beyond max(latest, before), as replies and writes of this kernel alone tell it ends.
 * `before` covers replies that may not have been believed, as an invalidation came near to them. */
#include "fuse/kernel/sizes.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"

#define SLOTS 8192U
#define LOCKS 64U

static_assert(SLOTS % LOCKS == 0, "each lock guards as many slots");

/* How near to an invalidation a reply may not have been believed: the time from before the kernel
 * asked until it has looked at the reply, with much room for a busy machine. */
#define NEAR MFS_SEC

struct slot {
    uint64_t ino;    /* 0: free */
    uint64_t latest; /* the furthest end that was replied, or written to, since `since` */
    uint64_t before; /* the furthest that may have been believed until then */
    int64_t since;
    uint64_t replied; /* last, and when */
    int64_t replied_at;
    int64_t invalidated; /* when last; 0: never */
};

struct mfs_sizes {
    pthread_mutex_t lock[LOCKS]; /* slot i is guarded by lock[i % LOCKS]; leaves */
    struct slot slot[SLOTS];
};

struct mfs_sizes *mfs_sizes_create(void)
{
    struct mfs_sizes *z = calloc(1, sizeof *z);

    for (unsigned i = 0; z != NULL && i < LOCKS; i++)
        pthread_mutex_init(&z->lock[i], NULL);
    return z;
}

void mfs_sizes_destroy(struct mfs_sizes *z)
{
    for (unsigned i = 0; z != NULL && i < LOCKS; i++)
        pthread_mutex_destroy(&z->lock[i]);
    free(z);
}

static struct slot *lock_slot(struct mfs_sizes *z, uint64_t ino, pthread_mutex_t **lock)
{
    uint64_t i = mfs_hash64(&ino, sizeof ino, 0) % SLOTS;

    *lock = &z->lock[i % LOCKS];
    pthread_mutex_lock(*lock);
    return &z->slot[i];
}

static uint64_t furthest(const struct slot *s)
{
    return s->latest > s->before ? s->latest : s->before;
}

void mfs_sizes_replied(struct mfs_sizes *z, uint64_t ino, uint64_t size, int64_t now)
{
    pthread_mutex_t *lock;
    struct slot *s = lock_slot(z, ino, &lock);

    if (s->ino != ino) {
        *s = (struct slot){.ino = ino, .latest = size, .since = now};
    } else if (now - s->since > NEAR && now - s->invalidated > NEAR) {
        /* If no invalidation came near the replies before, the last of these was believed. */
        s->before = s->invalidated < s->since - NEAR ? s->latest : furthest(s);
        s->latest = size;
        s->since = now;
    } else if (size > s->latest) {
        s->latest = size;
    }
    s->replied = size;
    s->replied_at = now;
    pthread_mutex_unlock(lock);
}

void mfs_sizes_extended(struct mfs_sizes *z, uint64_t ino, uint64_t end)
{
    pthread_mutex_t *lock;
    struct slot *s = lock_slot(z, ino, &lock);

    if (s->ino == ino && end > s->latest)
        s->latest = end;
    pthread_mutex_unlock(lock);
}

bool mfs_sizes_may_extend(struct mfs_sizes *z, uint64_t ino, uint64_t end, int64_t seen)
{
    pthread_mutex_t *lock;
    struct slot *s = lock_slot(z, ino, &lock);
    bool may = s->ino != ino || s->replied_at < seen || s->replied >= end;

    if (may && s->ino == ino && end > s->latest)
        s->latest = end;
    pthread_mutex_unlock(lock);
    return may;
}

void mfs_sizes_invalidated(struct mfs_sizes *z, uint64_t ino, int64_t now)
{
    pthread_mutex_t *lock;
    struct slot *s = lock_slot(z, ino, &lock);

    if (s->ino == ino)
        s->invalidated = now;
    pthread_mutex_unlock(lock);
}

bool mfs_sizes_may_be_stale(struct mfs_sizes *z, uint64_t ino, uint64_t size, int64_t now)
{
    pthread_mutex_t *lock;
    struct slot *s = lock_slot(z, ino, &lock);
    bool stale =
        s->ino == ino && s->invalidated != 0 && now - s->invalidated <= NEAR && furthest(s) > size;

    pthread_mutex_unlock(lock);
    return stale;
}
