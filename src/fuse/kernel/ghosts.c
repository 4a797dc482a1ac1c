#include "fuse/kernel/ghosts.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/hash.h"

/* Directories have to last while a process sits in them, other inodes for a moment: so neither
 * takes the room of the other. */
#define SETS     2048U
#define DIR_WAYS 8U
#define WAYS     12U
#define LOCKS    64U

struct set {
    uint64_t now;        /* counts uses */
    uint64_t used[WAYS]; /* 0: free */
    uint64_t ino[WAYS];  /* of directories the first DIR_WAYS */
    struct mfs_attr attr[WAYS];
};

struct mfs_ghosts {
    pthread_mutex_t lock[LOCKS]; /* set i is guarded by lock[i % LOCKS]; leaves */
    struct set set[SETS];
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

static struct set *lock_set(struct mfs_ghosts *g, uint64_t ino, pthread_mutex_t **lock)
{
    uint64_t i = mfs_hash64(&ino, sizeof ino, 0) % SETS;

    *lock = &g->lock[i % LOCKS];
    pthread_mutex_lock(*lock);
    return &g->set[i];
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

void mfs_ghosts_remember(struct mfs_ghosts *g, const struct mfs_attr *attr)
{
    pthread_mutex_t *lock;
    struct set *s = lock_set(g, attr->ino, &lock);
    unsigned i = find(s, attr->ino);

    if (i == WAYS)
        i = oldest(s, S_ISDIR(attr->mode));
    s->used[i] = ++s->now;
    s->ino[i] = attr->ino;
    s->attr[i] = *attr;
    pthread_mutex_unlock(lock);
}

bool mfs_ghosts_recall(struct mfs_ghosts *g, uint64_t ino, struct mfs_attr *attr)
{
    pthread_mutex_t *lock;
    struct set *s = lock_set(g, ino, &lock);
    unsigned i = find(s, ino);

    if (i < WAYS) {
        s->used[i] = ++s->now;
        *attr = s->attr[i];
        attr->nlink = 0;
    }
    pthread_mutex_unlock(lock);
    return i < WAYS;
}
