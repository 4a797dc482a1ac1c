/* Two tables: which node was found at a place, and how many numbers an inode has had. Each is cut
 * into sets that forget what has not been used for longest. And exactly what the kernel holds, so
 * that what the tables have forgotten, or a count that begins anew, gives nobody else's number. */
#include "fuse/kernel/places.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

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

/* A node that the kernel has been told of more often than it has forgotten it. */
struct held {
    uint64_t node;
    uint64_t place;
    uint64_t lookups;
    UT_hash_handle hh;
};

struct mfs_places {
    pthread_mutex_t lock; /* guards what follows; a leaf */
    uint64_t now;         /* counts uses */
    struct held *held;
    struct mfs_kept *kept; /* of nodes that are held */
    struct table nodes;    /* place → node */
    struct table counts;   /* ino → how many nodes it had before its newest */
};

struct mfs_places *mfs_places_create(void)
{
    struct mfs_places *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    p->kept = mfs_kept_create();
    if (p->kept == NULL) {
        free(p);
        return NULL;
    }
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void mfs_places_destroy(struct mfs_places *p)
{
    struct held *h, *next;

    if (p == NULL)
        return;
    HASH_ITER(hh, p->held, h, next)
    {
        HASH_DEL(p->held, h);
        free(h);
    }
    mfs_kept_destroy(p->kept);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static struct held *held(struct mfs_places *p, uint64_t node)
{
    struct held *h;

    HASH_FIND(hh, p->held, &node, sizeof node, h);
    return h;
}

/* Without memory it is not counted, and may get a second place in the end. */
static void hold(struct mfs_places *p, uint64_t node, uint64_t place)
{
    struct held *h = held(p, node);

    if (h == NULL) {
        h = calloc(1, sizeof *h);
        if (h == NULL)
            return;
        h->node = node;
        HASH_ADD(hh, p->held, node, sizeof h->node, h);
    }
    h->place = place;
    h->lookups++;
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

static uint64_t numbered(uint64_t ino, uint64_t count)
{
    return ino | count % MFS_PLACES_COUNTS << MFS_PLACES_SHIFT;
}

/* A number that the inode has not had, as far as is known, and that the kernel does not hold;
 * unless it holds all that there are. */
static uint64_t new_node(struct mfs_places *p, uint64_t ino, const struct item *count, bool known)
{
    uint64_t next = known ? count->value + 1 : 0;

    if (ino & MFS_INO_LARGE)
        return ino;
    for (unsigned i = 0; i < MFS_PLACES_COUNTS && held(p, numbered(ino, next)); i++)
        next++;
    put(p, &p->counts, ino, next);
    return numbered(ino, next);
}

bool mfs_places_is_elsewhere(struct mfs_places *p, uint64_t node)
{
    uint64_t ino = mfs_places_ino(node), last = MFS_PLACES_COUNTS - 1;
    bool known, elsewhere = false;
    struct item *count;

    if (ino & MFS_INO_LARGE)
        return false;
    pthread_mutex_lock(&p->lock);
    count = find(&p->counts, ino, &known);
    if (known && count->value < last)
        last = count->value;
    for (uint64_t i = 0; i <= last && !elsewhere; i++)
        elsewhere = numbered(ino, i) != node && held(p, numbered(ino, i)) != NULL;
    pthread_mutex_unlock(&p->lock);
    return elsewhere;
}

/* May a node that was at that place once be found there again? */
static bool is_free_for(struct mfs_places *p, uint64_t node, uint64_t place)
{
    const struct held *h = held(p, node);

    return h == NULL || h->place == place;
}

uint64_t mfs_places_node(struct mfs_places *p, uint64_t parent, const char *name, uint64_t ino)
{
    uint64_t place = mfs_kept_place_hash(parent, name), node;
    struct item *here, *count;
    bool found, known;

    pthread_mutex_lock(&p->lock);
    here = find(&p->nodes, place, &found);
    count = find(&p->counts, ino, &known);
    if (found && mfs_places_ino(here->value) == ino && is_free_for(p, here->value, place)) {
        here->used = ++p->now;
        if (known)
            count->used = p->now;
        node = here->value;
    } else {
        node = new_node(p, ino, count, known);
        put(p, &p->nodes, place, node);
    }
    hold(p, node, place);
    pthread_mutex_unlock(&p->lock);
    return node;
}

void mfs_places_forget(struct mfs_places *p, uint64_t node, uint64_t lookups)
{
    struct held *h;

    pthread_mutex_lock(&p->lock);
    h = held(p, node);
    if (h != NULL && h->lookups > lookups) {
        h->lookups -= lookups;
    } else if (h != NULL) {
        mfs_kept_remove(p->kept, mfs_places_ino(node), node);
        HASH_DEL(p->held, h);
        free(h);
    }
    pthread_mutex_unlock(&p->lock);
}

static void put_moved(struct mfs_places *p, uint64_t place, uint64_t node)
{
    struct held *h = held(p, node);

    put(p, &p->nodes, place, node);
    if (h != NULL)
        h->place = place;
}

void mfs_places_renamed(struct mfs_places *p, uint64_t parent, const char *name,
                        uint64_t new_parent, const char *new_name, bool exchange)
{
    uint64_t from = mfs_kept_place_hash(parent, name),
             to = mfs_kept_place_hash(new_parent, new_name);
    uint64_t moved, other;

    pthread_mutex_lock(&p->lock);
    moved = take(p, from);
    other = take(p, to);
    if (moved != 0)
        put_moved(p, to, moved);
    if (exchange && other != 0)
        put_moved(p, from, other);
    mfs_kept_renamed(p->kept, parent, name, new_parent, new_name, exchange);
    pthread_mutex_unlock(&p->lock);
}

bool mfs_places_keep(struct mfs_places *p, uint64_t node, uint64_t parent, const char *name)
{
    uint64_t ino = mfs_places_ino(node), nodes[MFS_PLACES_ALIASES];
    bool kept;

    pthread_mutex_lock(&p->lock);
    kept = held(p, node) &&
           mfs_kept_nodes(p->kept, ino, nodes, MFS_PLACES_ALIASES) < MFS_PLACES_ALIASES &&
           mfs_kept_add(p->kept, ino, node, parent, name);
    pthread_mutex_unlock(&p->lock);
    return kept;
}

bool mfs_places_is_kept(struct mfs_places *p, uint64_t node)
{
    const struct mfs_kept_name *k;
    bool is;

    pthread_mutex_lock(&p->lock);
    k = mfs_kept_find(p->kept, mfs_places_ino(node), node);
    is = k != NULL && !k->stale;
    pthread_mutex_unlock(&p->lock);
    return is;
}

size_t mfs_places_kept(struct mfs_places *p, uint64_t ino, uint64_t nodes[MFS_PLACES_ALIASES])
{
    size_t n;

    pthread_mutex_lock(&p->lock);
    n = mfs_kept_nodes(p->kept, ino, nodes, MFS_PLACES_ALIASES);
    pthread_mutex_unlock(&p->lock);
    return n;
}

size_t mfs_places_revoke(struct mfs_places *p, uint64_t ino, const struct mfs_kept_place but[2])
{
    size_t n;

    pthread_mutex_lock(&p->lock);
    n = mfs_kept_revoke(p->kept, ino, but);
    pthread_mutex_unlock(&p->lock);
    return n;
}

bool mfs_places_stale(struct mfs_places *p, uint64_t ino, struct mfs_places_stale *stale)
{
    const struct mfs_kept_name *k;

    pthread_mutex_lock(&p->lock);
    k = mfs_kept_stale(p->kept, ino);
    if (k != NULL) {
        stale->node = k->node;
        stale->parent = k->parent;
        stale->changes = k->changes;
        snprintf(stale->name, sizeof stale->name, "%s", k->name);
    }
    pthread_mutex_unlock(&p->lock);
    return k != NULL;
}

void mfs_places_dropped(struct mfs_places *p, const struct mfs_places_stale *stale)
{
    uint64_t ino = mfs_places_ino(stale->node);
    const struct mfs_kept_name *k;

    pthread_mutex_lock(&p->lock);
    k = mfs_kept_find(p->kept, ino, stale->node);
    if (k != NULL && k->changes == stale->changes)
        mfs_kept_remove(p->kept, ino, stale->node);
    pthread_mutex_unlock(&p->lock);
}
