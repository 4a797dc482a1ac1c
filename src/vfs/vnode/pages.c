#include "vfs/vnode/pages.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"

#define SLOTS 16384U
#define LOCKS 16U

struct slot {
    uint64_t ino;        /* 0: free */
    uint64_t version;    /* of the pages; of those to come, while they are not known */
    uint64_t generation; /* counts what makes tickets void */
    bool known;
};

struct mfs_pages {
    pthread_mutex_t lock[LOCKS]; /* slot i is guarded by lock[i % LOCKS]; a leaf */
    struct slot slot[SLOTS];
};

struct mfs_pages *mfs_pages_create(void)
{
    struct mfs_pages *p = calloc(1, sizeof *p);

    for (unsigned i = 0; p != NULL && i < LOCKS; i++)
        pthread_mutex_init(&p->lock[i], NULL);
    return p;
}

void mfs_pages_destroy(struct mfs_pages *p)
{
    for (unsigned i = 0; p != NULL && i < LOCKS; i++)
        pthread_mutex_destroy(&p->lock[i]);
    free(p);
}

static struct slot *lock_slot(struct mfs_pages *p, uint64_t ino, pthread_mutex_t **lock)
{
    uint64_t i = mfs_hash64(&ino, sizeof ino, 0) % SLOTS;

    *lock = &p->lock[i % LOCKS];
    pthread_mutex_lock(*lock);
    return &p->slot[i];
}

bool mfs_pages_open(struct mfs_pages *p, uint64_t ino, uint64_t version,
                    struct mfs_pages_ticket *ticket)
{
    pthread_mutex_t *lock;
    struct slot *s = lock_slot(p, ino, &lock);
    bool keep = s->ino == ino && s->known && s->version >= version;

    if (!keep) {
        s->ino = ino;
        s->known = false;
        s->version = version;
        ticket->generation = ++s->generation;
    }
    pthread_mutex_unlock(lock);
    return keep;
}

bool mfs_pages_behind(struct mfs_pages *p, uint64_t ino, uint64_t version)
{
    pthread_mutex_t *lock;
    struct slot *s = lock_slot(p, ino, &lock);
    bool behind = s->ino == ino && s->known && s->version < version;

    pthread_mutex_unlock(lock);
    return behind;
}

void mfs_pages_adopt(struct mfs_pages *p, uint64_t ino, const struct mfs_pages_ticket *ticket)
{
    pthread_mutex_t *lock;
    struct slot *s = lock_slot(p, ino, &lock);

    if (s->ino == ino && s->generation == ticket->generation)
        s->known = true;
    pthread_mutex_unlock(lock);
}

void mfs_pages_carry(struct mfs_pages *p, uint64_t ino, uint64_t from, uint64_t to)
{
    pthread_mutex_t *lock;
    struct slot *s = lock_slot(p, ino, &lock);

    if (s->ino == ino && s->version != from) {
        s->known = false;
        s->generation++;
    }
    if (s->ino == ino)
        s->version = to;
    pthread_mutex_unlock(lock);
}

void mfs_pages_forget(struct mfs_pages *p, uint64_t ino)
{
    pthread_mutex_t *lock;
    struct slot *s = lock_slot(p, ino, &lock);

    if (s->ino == ino) {
        s->known = false;
        s->generation++;
    }
    pthread_mutex_unlock(lock);
}

void mfs_pages_forget_all(struct mfs_pages *p)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        pthread_mutex_t *lock = &p->lock[i % LOCKS];

        pthread_mutex_lock(lock);
        p->slot[i].known = false;
        p->slot[i].generation++;
        pthread_mutex_unlock(lock);
    }
}

bool mfs_pages_known(struct mfs_pages *p, uint64_t ino)
{
    pthread_mutex_t *lock;
    struct slot *s = lock_slot(p, ino, &lock);
    bool known = s->ino == ino && s->known;

    pthread_mutex_unlock(lock);
    return known;
}
