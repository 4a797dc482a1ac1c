#include "fuse/places.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define SLOTS 16384U

struct place {
    uint64_t ino;   /* 0: free */
    uint64_t where; /* hash of parent and name */
    uint8_t count;  /* of times it turned up elsewhere */
};

struct mfs_places {
    pthread_mutex_t lock; /* guards both tables; a leaf */
    struct place by_ino[SLOTS];
    struct place by_where[SLOTS]; /* only ino and where */
};

struct mfs_places *mfs_places_create(void)
{
    struct mfs_places *p = calloc(1, sizeof *p);

    if (p != NULL)
        pthread_mutex_init(&p->lock, NULL);
    return p;
}

void mfs_places_destroy(struct mfs_places *p)
{
    if (p != NULL)
        pthread_mutex_destroy(&p->lock);
    free(p);
}

static uint64_t where_of(uint64_t parent, const char *name)
{
    return mfs_hash64(name, strlen(name), parent);
}

static struct place *slot_of_ino(struct mfs_places *p, uint64_t ino)
{
    return &p->by_ino[mfs_hash64(&ino, sizeof ino, 0) % SLOTS];
}

static void settle(struct mfs_places *p, uint64_t ino, uint64_t where)
{
    p->by_where[where % SLOTS] = (struct place){.ino = ino, .where = where};
}

uint64_t mfs_places_node(struct mfs_places *p, uint64_t parent, const char *name, uint64_t ino)
{
    uint64_t where = where_of(parent, name), node;
    struct place *slot = slot_of_ino(p, ino);

    pthread_mutex_lock(&p->lock);
    if (slot->ino != ino)
        *slot = (struct place){.ino = ino, .where = where};
    else if (slot->where != where)
        slot->count++;
    slot->where = where;
    settle(p, ino, where);
    node = ino | (uint64_t)slot->count << MFS_PLACES_SHIFT;
    pthread_mutex_unlock(&p->lock);
    return node;
}

/* The directory at `where`, 0 when none is known there. */
static uint64_t find(const struct mfs_places *p, uint64_t where)
{
    const struct place *slot = &p->by_where[where % SLOTS];

    return slot->where == where ? slot->ino : 0;
}

static void move(struct mfs_places *p, uint64_t ino, uint64_t where)
{
    struct place *slot = slot_of_ino(p, ino);

    if (ino == 0)
        return;
    if (slot->ino == ino)
        slot->where = where;
    settle(p, ino, where);
}

void mfs_places_renamed(struct mfs_places *p, uint64_t parent, const char *name,
                        uint64_t new_parent, const char *new_name, bool exchange)
{
    uint64_t from = where_of(parent, name), to = where_of(new_parent, new_name);
    uint64_t moved, other;

    pthread_mutex_lock(&p->lock);
    moved = find(p, from);
    other = exchange ? find(p, to) : 0;
    p->by_where[from % SLOTS] = (struct place){0};
    move(p, moved, to);
    move(p, other, from);
    pthread_mutex_unlock(&p->lock);
}
