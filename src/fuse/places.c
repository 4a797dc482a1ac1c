/* Two tables: which node was found at a place, and how many numbers an inode has had. Each is cut
 * into sets that forget what has not been used for longest. */
#include "fuse/places.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define SETS 4096U
#define WAYS 8U

struct item {
    uint64_t key;
    uint64_t used; /* 0: free */
    uint64_t value;
};

struct table {
    struct item item[SETS][WAYS];
};

struct mfs_places {
    pthread_mutex_t lock; /* guards what follows; a leaf */
    uint64_t now;         /* counts uses */
    struct table nodes;   /* place → node */
    struct table counts;  /* ino → count of its newest node */
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

/* The item of `key`; if there is none, the one that would have to go for it, and *found false. */
static struct item *find(struct table *t, uint64_t key, bool *found)
{
    struct item *set = t->item[mfs_hash64(&key, sizeof key, 0) % SETS], *oldest = set;

    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].used != 0 && set[i].key == key) {
            *found = true;
            return &set[i];
        }
        if (set[i].used < oldest->used)
            oldest = &set[i];
    }
    *found = false;
    return oldest;
}

static void put(struct mfs_places *p, struct table *t, uint64_t key, uint64_t value)
{
    bool found;
    struct item *item = find(t, key, &found);

    *item = (struct item){.key = key, .used = ++p->now, .value = value};
}

/* The node at a place, 0 when none is known there; takes it out. */
static uint64_t take(struct mfs_places *p, uint64_t place)
{
    bool found;
    struct item *item = find(&p->nodes, place, &found);
    uint64_t node = found ? item->value : 0;

    if (found)
        item->used = 0;
    return node;
}

static uint64_t place_of(uint64_t parent, const char *name)
{
    return mfs_hash64(name, strlen(name), parent);
}

/* A number that the inode has not had, as far as is known. */
static uint64_t new_node(struct mfs_places *p, uint64_t ino, const struct item *count, bool known)
{
    uint64_t next = known ? (count->value + 1) % MFS_PLACES_COUNTS : 0;

    put(p, &p->counts, ino, next);
    return ino | next << MFS_PLACES_SHIFT;
}

uint64_t mfs_places_node(struct mfs_places *p, uint64_t parent, const char *name, uint64_t ino)
{
    uint64_t place = place_of(parent, name), node;
    struct item *here, *count;
    bool found, known;

    pthread_mutex_lock(&p->lock);
    here = find(&p->nodes, place, &found);
    count = find(&p->counts, ino, &known);
    if (found && mfs_places_ino(here->value) == ino) {
        here->used = ++p->now;
        if (known)
            count->used = p->now;
        node = here->value;
    } else {
        node = new_node(p, ino, count, known);
        put(p, &p->nodes, place, node);
    }
    pthread_mutex_unlock(&p->lock);
    return node;
}

void mfs_places_renamed(struct mfs_places *p, uint64_t parent, const char *name,
                        uint64_t new_parent, const char *new_name, bool exchange)
{
    uint64_t from = place_of(parent, name), to = place_of(new_parent, new_name);
    uint64_t moved, other;

    pthread_mutex_lock(&p->lock);
    moved = take(p, from);
    other = take(p, to);
    if (moved != 0)
        put(p, &p->nodes, to, moved);
    if (exchange && other != 0)
        put(p, &p->nodes, from, other);
    pthread_mutex_unlock(&p->lock);
}
