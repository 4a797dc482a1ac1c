/* A set-associative cache: the inode's hash chooses a set, and the least recently used way of its
 * kind is replaced. Invariant: ways below DIR_WAYS hold directories, the others all else. */
#include "fuse/kernel/last_attrs.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/hash.h"

/* A directory has to stay while it is a process's working directory, another inode for a moment. So
 * neither kind evicts the other. */
#define SETS     2048U
#define DIR_WAYS 8U
#define WAYS     12U
#define LOCKS    64U

static_assert(DIR_WAYS < WAYS && SETS % LOCKS == 0, "each kind has ways, each lock as many sets");

struct set {
    uint64_t now;        /* counts uses */
    uint64_t used[WAYS]; /* 0: free */
    uint64_t ino[WAYS];  /* of directories the first DIR_WAYS */
    struct mfs_attr attr[WAYS];
};

struct mfs_last_attrs {
    pthread_mutex_t lock[LOCKS]; /* set i is guarded by lock[i % LOCKS]; leaves */
    struct set set[SETS];
};

struct mfs_last_attrs *mfs_last_attrs_create(void)
{
    struct mfs_last_attrs *l = calloc(1, sizeof *l);

    for (unsigned i = 0; l != NULL && i < LOCKS; i++)
        pthread_mutex_init(&l->lock[i], NULL);
    return l;
}

void mfs_last_attrs_destroy(struct mfs_last_attrs *l)
{
    for (unsigned i = 0; l != NULL && i < LOCKS; i++)
        pthread_mutex_destroy(&l->lock[i]);
    free(l);
}

static struct set *lock_set(struct mfs_last_attrs *l, uint64_t ino, pthread_mutex_t **lock)
{
    uint64_t i = mfs_hash64(&ino, sizeof ino, 0) % SETS;

    *lock = &l->lock[i % LOCKS];
    pthread_mutex_lock(*lock);
    return &l->set[i];
}

/* The inode's way, WAYS when it has none. */
static unsigned find(const struct set *s, uint64_t ino)
{
    unsigned i = 0;

    while (i < WAYS && (s->used[i] == 0 || s->ino[i] != ino))
        i++;
    return i;
}

/* The way of its kind that has not been used for longest. */
static unsigned oldest(const struct set *s, bool dir)
{
    unsigned end = dir ? DIR_WAYS : WAYS, found = dir ? 0 : DIR_WAYS;

    for (unsigned i = found; i < end; i++)
        if (s->used[i] < s->used[found])
            found = i;
    return found;
}

void mfs_last_attrs_remember(struct mfs_last_attrs *l, const struct mfs_attr *attr)
{
    pthread_mutex_t *lock;
    struct set *s = lock_set(l, attr->ino, &lock);
    unsigned i = find(s, attr->ino);

    if (i == WAYS)
        i = oldest(s, S_ISDIR(attr->mode));
    s->used[i] = ++s->now;
    s->ino[i] = attr->ino;
    s->attr[i] = *attr;
    pthread_mutex_unlock(lock);
}

bool mfs_last_attrs_recall(struct mfs_last_attrs *l, uint64_t ino, struct mfs_attr *attr)
{
    pthread_mutex_t *lock;
    struct set *s = lock_set(l, ino, &lock);
    unsigned i = find(s, ino);

    if (i < WAYS) {
        s->used[i] = ++s->now;
        *attr = s->attr[i];
        attr->nlink = 0;
    }
    pthread_mutex_unlock(lock);
    return i < WAYS;
}
