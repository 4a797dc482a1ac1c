/* A set-associative cache: the inode's hash chooses a set, and the least recently used way of its
 * kind is replaced. Invariant: ways below DIR_WAYS hold directories, the others all else. */
#include "fuse/kernel/replied.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "fuse/kernel/sizes.h"

/* A directory has to stay while it is a process's working directory, another inode for a moment. So
 * neither kind evicts the other. */
#define SETS     2048U
#define DIR_WAYS 8U
#define WAYS     12U
#define LOCKS    64U

static_assert(DIR_WAYS < WAYS && SETS % LOCKS == 0, "each kind has ways, each lock as many sets");

struct set {
    uint64_t now;               /* counts uses */
    uint64_t used[WAYS];        /* 0: free */
    uint64_t ino[WAYS];         /* of directories the first DIR_WAYS */
    struct mfs_attr attr[WAYS]; /* of one that always had no link, all zero */
    struct mfs_sizes sizes[WAYS - DIR_WAYS];
};

struct mfs_replied {
    pthread_mutex_t lock[LOCKS]; /* set i is guarded by lock[i % LOCKS]; leaves */
    struct set set[SETS];
};

struct mfs_replied *mfs_replied_create(void)
{
    struct mfs_replied *r = calloc(1, sizeof *r);

    for (unsigned i = 0; r != NULL && i < LOCKS; i++)
        pthread_mutex_init(&r->lock[i], NULL);
    return r;
}

void mfs_replied_destroy(struct mfs_replied *r)
{
    for (unsigned i = 0; r != NULL && i < LOCKS; i++)
        pthread_mutex_destroy(&r->lock[i]);
    free(r);
}

static struct set *lock_set(struct mfs_replied *r, uint64_t ino, pthread_mutex_t **lock)
{
    uint64_t i = mfs_hash64(&ino, sizeof ino, 0) % SETS;

    *lock = &r->lock[i % LOCKS];
    pthread_mutex_lock(*lock);
    return &r->set[i];
}

/* The inode's way, WAYS when it has none. */
static unsigned find(const struct set *s, uint64_t ino)
{
    unsigned i = 0;

    while (i < WAYS && (s->used[i] == 0 || s->ino[i] != ino))
        i++;
    return i;
}

/* The way of its kind that has not been used for longest, emptied. */
static unsigned evict(struct set *s, bool dir)
{
    unsigned end = dir ? DIR_WAYS : WAYS, found = dir ? 0 : DIR_WAYS;

    for (unsigned i = found; i < end; i++)
        if (s->used[i] < s->used[found])
            found = i;
    s->attr[found] = (struct mfs_attr){0};
    if (!dir)
        s->sizes[found - DIR_WAYS] = (struct mfs_sizes){0};
    return found;
}

void mfs_replied_attrs(struct mfs_replied *r, const struct mfs_attr *attr, int64_t now)
{
    pthread_mutex_t *lock;
    struct set *s = lock_set(r, attr->ino, &lock);
    unsigned i = find(s, attr->ino);

    if (i == WAYS)
        i = evict(s, S_ISDIR(attr->mode));
    s->used[i] = ++s->now;
    s->ino[i] = attr->ino;
    if (attr->nlink > 0)
        s->attr[i] = *attr;
    if (S_ISREG(attr->mode)) {
        assert(i >= DIR_WAYS); /* numbers are not used again, so no inode changes its kind */
        mfs_sizes_replied(&s->sizes[i - DIR_WAYS], attr->size, now);
    }
    pthread_mutex_unlock(lock);
}

bool mfs_replied_last(struct mfs_replied *r, uint64_t ino, struct mfs_attr *attr)
{
    pthread_mutex_t *lock;
    struct set *s = lock_set(r, ino, &lock);
    unsigned i = find(s, ino);
    bool known = i < WAYS && s->attr[i].ino == ino;

    if (known) {
        s->used[i] = ++s->now;
        *attr = s->attr[i];
    }
    pthread_mutex_unlock(lock);
    return known;
}

bool mfs_replied_recall(struct mfs_replied *r, uint64_t ino, struct mfs_attr *attr)
{
    bool known = mfs_replied_last(r, ino, attr);

    if (known)
        attr->nlink = 0;
    return known;
}

/* The sizes of the inode, NULL when there are none. Takes the lock in any case. */
static struct mfs_sizes *lock_sizes(struct mfs_replied *r, uint64_t ino, pthread_mutex_t **lock)
{
    struct set *s = lock_set(r, ino, lock);
    unsigned i = find(s, ino);

    return i >= DIR_WAYS && i < WAYS ? &s->sizes[i - DIR_WAYS] : NULL;
}

void mfs_replied_extended(struct mfs_replied *r, uint64_t ino, uint64_t end)
{
    pthread_mutex_t *lock;
    struct mfs_sizes *z = lock_sizes(r, ino, &lock);

    if (z != NULL)
        mfs_sizes_extended(z, end);
    pthread_mutex_unlock(lock);
}

bool mfs_replied_may_extend(struct mfs_replied *r, uint64_t ino, uint64_t end, int64_t seen)
{
    pthread_mutex_t *lock;
    struct mfs_sizes *z = lock_sizes(r, ino, &lock);
    bool may = z == NULL || mfs_sizes_may_extend(z, end, seen);

    pthread_mutex_unlock(lock);
    return may;
}

void mfs_replied_invalidated(struct mfs_replied *r, uint64_t ino, int64_t now)
{
    pthread_mutex_t *lock;
    struct mfs_sizes *z = lock_sizes(r, ino, &lock);

    if (z != NULL)
        mfs_sizes_invalidated(z, now);
    pthread_mutex_unlock(lock);
}

bool mfs_replied_may_be_stale(struct mfs_replied *r, uint64_t ino, uint64_t size, int64_t now)
{
    pthread_mutex_t *lock;
    struct mfs_sizes *z = lock_sizes(r, ino, &lock);
    bool stale = z != NULL && mfs_sizes_may_be_stale(z, size, now);

    pthread_mutex_unlock(lock);
    return stale;
}
