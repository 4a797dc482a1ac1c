/* Two tables: dentry → nodeid, and ino → how many nodeids it has had. Both are set-associative
 * caches, which evict the least recently used of a set. And a hash of exactly the nodeids that the
 * kernel holds.
 *
 * Invariant: a nodeid that the kernel holds is given out for no other dentry than its own, whatever
 * the tables have evicted and wherever a count begins anew; unless the kernel holds all of a
 * directory's nodeids, or the directory has only one (MFS_INO_LARGE). */
#include "fuse/kernel/nodeids.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/table.h"

#define SETS 4096U
#define WAYS 8U

static_assert(MFS_NODEIDS_ALIASES <= MFS_NODEIDS_COUNTS, "an alias is a nodeid of its own");

struct item {
    uint64_t key;
    uint64_t used; /* 0: free */
    uint64_t value;
};

struct table {
    struct item item[SETS][WAYS];
};

/* A nodeid that the kernel has looked up more often than it has forgotten it. */
struct held {
    uint64_t nodeid;
    uint64_t dentry; /* its hash */
    uint64_t lookups;
    UT_hash_handle hh;
};

struct mfs_nodeids {
    pthread_mutex_t lock; /* guards what follows; a leaf */
    uint64_t now;         /* counts uses */
    struct held *held;
    struct mfs_dentries *leased; /* of nodeids that are held */
    struct table nodeids;        /* hash of a dentry → nodeid */
    struct table counts;         /* ino → how many nodeids it had before its newest */
};

struct mfs_nodeids *mfs_nodeids_create(void)
{
    struct mfs_nodeids *ids = calloc(1, sizeof *ids);

    if (ids == NULL)
        return NULL;
    ids->leased = mfs_dentries_create();
    if (ids->leased == NULL) {
        free(ids);
        return NULL;
    }
    pthread_mutex_init(&ids->lock, NULL);
    return ids;
}

void mfs_nodeids_destroy(struct mfs_nodeids *ids)
{
    struct held *h, *next;

    if (ids == NULL)
        return;
    HASH_ITER(hh, ids->held, h, next)
    {
        HASH_DEL(ids->held, h);
        free(h);
    }
    mfs_dentries_destroy(ids->leased);
    pthread_mutex_destroy(&ids->lock);
    free(ids);
}

static struct held *held(struct mfs_nodeids *ids, uint64_t nodeid)
{
    struct held *h;

    HASH_FIND(hh, ids->held, &nodeid, sizeof nodeid, h);
    return h;
}

/* Without memory the look-up is not counted, and the nodeid may be given out for a second dentry.
 */
static void hold(struct mfs_nodeids *ids, uint64_t nodeid, uint64_t dentry)
{
    struct held *h = held(ids, nodeid);

    if (h == NULL) {
        h = calloc(1, sizeof *h);
        if (h == NULL)
            return;
        h->nodeid = nodeid;
        HASH_ADD(hh, ids->held, nodeid, sizeof h->nodeid, h);
        if (h->hh.tbl == NULL) {
            free(h);
            return;
        }
    }
    h->dentry = dentry;
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

static void put(struct mfs_nodeids *ids, struct table *t, uint64_t key, uint64_t value)
{
    bool found;
    struct item *item = find(t, key, &found);

    *item = (struct item){.key = key, .used = ++ids->now, .value = value};
}

/* Takes the nodeid of a dentry out of the table; 0: none is known. */
static uint64_t take(struct mfs_nodeids *ids, uint64_t dentry)
{
    bool found;
    struct item *item = find(&ids->nodeids, dentry, &found);
    uint64_t nodeid = found ? item->value : 0;

    if (found)
        item->used = 0;
    return nodeid;
}

static uint64_t numbered(uint64_t ino, uint64_t count)
{
    return ino | count % MFS_NODEIDS_COUNTS << MFS_NODEIDS_SHIFT;
}

/* A nodeid that the inode has not had, as far as is known, and that the kernel does not hold;
 * unless it holds all that there are. */
static uint64_t new_nodeid(struct mfs_nodeids *ids, uint64_t ino, const struct item *count,
                           bool known)
{
    uint64_t next = known ? count->value + 1 : 0;

    if (ino & MFS_INO_LARGE)
        return ino;
    for (unsigned i = 0; i < MFS_NODEIDS_COUNTS && held(ids, numbered(ino, next)); i++)
        next++;
    put(ids, &ids->counts, ino, next);
    return numbered(ino, next);
}

bool mfs_nodeids_has_alias(struct mfs_nodeids *ids, uint64_t nodeid)
{
    uint64_t ino = mfs_nodeids_ino(nodeid), last = MFS_NODEIDS_COUNTS - 1;
    bool known, elsewhere = false;
    struct item *count;

    if (ino & MFS_INO_LARGE)
        return false;
    pthread_mutex_lock(&ids->lock);
    count = find(&ids->counts, ino, &known);
    if (known && count->value < last)
        last = count->value;
    for (uint64_t i = 0; i <= last && !elsewhere; i++)
        elsewhere = numbered(ino, i) != nodeid && held(ids, numbered(ino, i)) != NULL;
    pthread_mutex_unlock(&ids->lock);
    return elsewhere;
}

/* May the nodeid that this dentry had once be given out for it again? */
static bool is_free_for(struct mfs_nodeids *ids, uint64_t nodeid, uint64_t dentry)
{
    const struct held *h = held(ids, nodeid);

    return h == NULL || h->dentry == dentry;
}

uint64_t mfs_nodeids_lookup(struct mfs_nodeids *ids, uint64_t parent, const char *name,
                            uint64_t ino)
{
    uint64_t dentry = mfs_dentry_hash(parent, name), nodeid;
    struct item *here, *count;
    bool found, known;

    pthread_mutex_lock(&ids->lock);
    here = find(&ids->nodeids, dentry, &found);
    count = find(&ids->counts, ino, &known);
    if (found && mfs_nodeids_ino(here->value) == ino && is_free_for(ids, here->value, dentry)) {
        here->used = ++ids->now;
        if (known)
            count->used = ids->now;
        nodeid = here->value;
    } else {
        nodeid = new_nodeid(ids, ino, count, known);
        put(ids, &ids->nodeids, dentry, nodeid);
    }
    hold(ids, nodeid, dentry);
    pthread_mutex_unlock(&ids->lock);
    return nodeid;
}

void mfs_nodeids_forget(struct mfs_nodeids *ids, uint64_t nodeid, uint64_t lookups)
{
    struct held *h;

    pthread_mutex_lock(&ids->lock);
    h = held(ids, nodeid);
    if (h != NULL && h->lookups > lookups) {
        h->lookups -= lookups;
    } else if (h != NULL) {
        mfs_dentries_remove(ids->leased, mfs_nodeids_ino(nodeid), nodeid);
        HASH_DEL(ids->held, h);
        free(h);
    }
    pthread_mutex_unlock(&ids->lock);
}

static void put_moved(struct mfs_nodeids *ids, uint64_t dentry, uint64_t nodeid)
{
    struct held *h = held(ids, nodeid);

    put(ids, &ids->nodeids, dentry, nodeid);
    if (h != NULL)
        h->dentry = dentry;
}

void mfs_nodeids_renamed(struct mfs_nodeids *ids, uint64_t parent, const char *name,
                         uint64_t new_parent, const char *new_name, bool exchange)
{
    uint64_t from = mfs_dentry_hash(parent, name), to = mfs_dentry_hash(new_parent, new_name);
    uint64_t moved, other;

    pthread_mutex_lock(&ids->lock);
    moved = take(ids, from);
    other = take(ids, to);
    if (moved != 0)
        put_moved(ids, to, moved);
    if (exchange && other != 0)
        put_moved(ids, from, other);
    mfs_dentries_renamed(ids->leased, parent, name, new_parent, new_name, exchange);
    pthread_mutex_unlock(&ids->lock);
}

bool mfs_nodeids_lease(struct mfs_nodeids *ids, uint64_t nodeid, uint64_t parent, const char *name)
{
    uint64_t ino = mfs_nodeids_ino(nodeid), nodeids[MFS_NODEIDS_ALIASES];
    bool kept;

    pthread_mutex_lock(&ids->lock);
    kept = held(ids, nodeid) &&
           mfs_dentries_nodeids(ids->leased, ino, nodeids, MFS_NODEIDS_ALIASES) <
               MFS_NODEIDS_ALIASES &&
           mfs_dentries_add(ids->leased, ino, nodeid, parent, name);
    pthread_mutex_unlock(&ids->lock);
    return kept;
}

bool mfs_nodeids_name(struct mfs_nodeids *ids, uint64_t nodeid, uint64_t *parent, char *name)
{
    const struct mfs_dentry *d;

    pthread_mutex_lock(&ids->lock);
    d = mfs_dentries_find(ids->leased, mfs_nodeids_ino(nodeid), nodeid);
    if (d != NULL) {
        *parent = d->parent;
        snprintf(name, 256, "%s", d->name);
    }
    pthread_mutex_unlock(&ids->lock);
    return d != NULL;
}

bool mfs_nodeids_is_leased(struct mfs_nodeids *ids, uint64_t nodeid)
{
    const struct mfs_dentry *d;
    bool is;

    pthread_mutex_lock(&ids->lock);
    d = mfs_dentries_find(ids->leased, mfs_nodeids_ino(nodeid), nodeid);
    is = d != NULL && !d->stale;
    pthread_mutex_unlock(&ids->lock);
    return is;
}

size_t mfs_nodeids_leased(struct mfs_nodeids *ids, uint64_t ino,
                          uint64_t nodeids[MFS_NODEIDS_ALIASES])
{
    size_t n;

    pthread_mutex_lock(&ids->lock);
    n = mfs_dentries_nodeids(ids->leased, ino, nodeids, MFS_NODEIDS_ALIASES);
    pthread_mutex_unlock(&ids->lock);
    return n;
}

size_t mfs_nodeids_revoke(struct mfs_nodeids *ids, uint64_t ino, const struct mfs_dentry_key but[2])
{
    size_t n;

    pthread_mutex_lock(&ids->lock);
    n = mfs_dentries_revoke(ids->leased, ino, but);
    pthread_mutex_unlock(&ids->lock);
    return n;
}

bool mfs_nodeids_stale(struct mfs_nodeids *ids, uint64_t ino, struct mfs_nodeids_stale *stale)
{
    const struct mfs_dentry *d;

    pthread_mutex_lock(&ids->lock);
    d = mfs_dentries_stale(ids->leased, ino);
    if (d != NULL) {
        stale->nodeid = d->nodeid;
        stale->parent = d->parent;
        stale->changes = d->changes;
        snprintf(stale->name, sizeof stale->name, "%s", d->name);
    }
    pthread_mutex_unlock(&ids->lock);
    return d != NULL;
}

void mfs_nodeids_dropped(struct mfs_nodeids *ids, const struct mfs_nodeids_stale *stale)
{
    uint64_t ino = mfs_nodeids_ino(stale->nodeid);
    const struct mfs_dentry *d;

    pthread_mutex_lock(&ids->lock);
    d = mfs_dentries_find(ids->leased, ino, stale->nodeid);
    if (d != NULL && d->changes == stale->changes)
        mfs_dentries_remove(ids->leased, ino, stale->nodeid);
    pthread_mutex_unlock(&ids->lock);
}
