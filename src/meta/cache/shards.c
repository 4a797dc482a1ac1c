/* Shards of directories all of whose names are known here, so that this client need not ask whether
 * a name is there. Known is a shard that was empty when this client put the first name into it, for
 * as long as it gets a notice of each name that others add (it is the shard's keeper, see
 * partition/files/leases.h). Names that are gone may still count as there: then the client asks. */
#include "meta/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/hash.h"
#include "base/table.h"
#include "meta/cache/cache.h"

#define MOST_DEFAULT (1U << 18)
#define SLOTS        4096U

struct shard_key {
    uint64_t dir, part;
};

struct name {
    uint64_t hash; /* of the shard, too */
    struct name *prev, *next;
    UT_hash_handle hh;
};

struct shard {
    struct shard_key key;
    int64_t until;
    struct name *list;
    UT_hash_handle hh;
};

/* What this client itself adds, by hash of the shard: a shard does not become known in answer to
 * one addition while there is another, whose name would be missing. */
struct slot {
    unsigned adding;
    bool lost;       /* a keeper's right may be given back at any time */
    int64_t changed; /* the last addition, or loss of a keeper's right, was then */
};

struct mfs_shards {
    pthread_mutex_t mutex;
    uint32_t most; /* names of all shards; beyond it the oldest shard is forgotten; constant */
    struct shard *known; /* under mutex, as is what follows */
    struct name *names;
    struct slot slot[SLOTS];
};

struct mfs_shards *mfs_shards_create(uint32_t most)
{
    struct mfs_shards *s = calloc(1, sizeof *s);

    if (s) {
        pthread_mutex_init(&s->mutex, NULL);
        s->most = most ? most : MOST_DEFAULT;
    }
    return s;
}

static void forget(struct mfs_shards *s, struct shard *shard)
{
    if (!shard)
        return;
    while (shard->list && s->names) { /* which is not empty as long as a list is not */
        struct name *n = shard->list;

        DL_DELETE(shard->list, n);
        HASH_DEL(s->names, n);
        free(n);
    }
    HASH_DEL(s->known, shard);
    free(shard);
}

static void forget_all(struct mfs_shards *s)
{
    while (s->known)
        forget(s, s->known);
}

void mfs_shards_destroy(struct mfs_shards *s)
{
    if (!s)
        return;
    forget_all(s);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

static struct slot *slot_of(struct mfs_shards *s, struct shard_key key)
{
    return &s->slot[mfs_hash64(&key, sizeof key, 0) % SLOTS];
}

static struct shard *find(struct mfs_shards *s, struct shard_key key)
{
    struct shard *shard;

    HASH_FIND(hh, s->known, &key, sizeof key, shard);
    return shard;
}

static struct name *find_name(struct mfs_shards *s, struct shard_key key, const char *name,
                              uint64_t *hash)
{
    struct name *n;

    *hash = mfs_hash64(name, strlen(name), mfs_hash64(&key, sizeof key, 1));
    HASH_FIND(hh, s->names, hash, sizeof *hash, n);
    return n;
}

/* The shard is forgotten when there is no room for its name. */
static void add_name(struct mfs_shards *s, struct shard *shard, const char *name)
{
    uint64_t hash;
    struct name *n = find_name(s, shard->key, name, &hash);

    if (n)
        return;
    if (HASH_COUNT(s->names) >= s->most && s->known != shard)
        forget(s, s->known);
    n = HASH_COUNT(s->names) < s->most ? malloc(sizeof *n) : NULL;
    if (!n) {
        forget(s, shard);
        return;
    }
    n->hash = hash;
    HASH_ADD(hh, s->names, hash, sizeof n->hash, n);
    if (!n->hh.tbl) {
        free(n);
        forget(s, shard);
        return;
    }
    DL_APPEND(shard->list, n);
}

bool mfs_shards_absent(struct mfs_shards *s, uint64_t dir, uint32_t part, const char *name)
{
    struct shard_key key = {dir, part};
    struct shard *shard;
    uint64_t hash;
    bool absent;

    pthread_mutex_lock(&s->mutex);
    shard = find(s, key);
    absent = shard && mfs_clock_mono() < shard->until && !find_name(s, key, name, &hash);
    pthread_mutex_unlock(&s->mutex);
    return absent;
}

enum mfs_shard_state mfs_shards_adding(struct mfs_shards *s, uint64_t dir, uint32_t part,
                                       const char *name)
{
    struct shard_key key = {dir, part};
    enum mfs_shard_state state = MFS_SHARD_UNKNOWN;
    struct shard *shard;

    pthread_mutex_lock(&s->mutex);
    slot_of(s, key)->adding++;
    shard = find(s, key);
    if (shard) {
        state = shard->until - mfs_clock_mono() < MFS_META_LEASE_FILE / 2 ? MFS_SHARD_OLD
                                                                          : MFS_SHARD_KNOWN;
        add_name(s, shard, name);
    }
    pthread_mutex_unlock(&s->mutex);
    return state;
}

/* Has this client certainly added nothing since then? Lock held. */
static bool alone(const struct slot *slot, int64_t since)
{
    return slot->adding == 0 && !slot->lost && slot->changed < since;
}

/* Lock held. */
static void know(struct mfs_shards *s, struct shard_key key, const char *name, int64_t asked)
{
    struct shard *shard = calloc(1, sizeof *shard);

    if (!shard)
        return;
    shard->key = key;
    shard->until = asked + MFS_META_LEASE_FILE;
    HASH_ADD(hh, s->known, key, sizeof shard->key, shard);
    if (!shard->hh.tbl) {
        free(shard);
        return;
    }
    add_name(s, shard, name);
}

void mfs_shards_added(struct mfs_shards *s, uint64_t dir, uint32_t part, const char *name,
                      enum mfs_keeper keeper, int64_t asked)
{
    struct shard_key key = {dir, part};
    struct slot *slot = slot_of(s, key);
    struct shard *shard;

    pthread_mutex_lock(&s->mutex);
    assert(slot->adding > 0);
    slot->adding--;
    shard = find(s, key);
    if (keeper == MFS_KEEPER_FIRST) {
        forget(s, shard);
        if (alone(slot, asked))
            know(s, key, name, asked);
    } else if (keeper == MFS_KEEPER_STILL && shard && shard->until < asked + MFS_META_LEASE_FILE) {
        shard->until = asked + MFS_META_LEASE_FILE;
    }
    slot->changed = mfs_clock_mono();
    pthread_mutex_unlock(&s->mutex);
}

void mfs_shards_removed(struct mfs_shards *s, uint64_t dir, uint32_t part, const char *name,
                        int64_t asked)
{
    struct shard_key key = {dir, part};
    struct shard *shard;
    struct name *n;
    uint64_t hash;

    pthread_mutex_lock(&s->mutex);
    shard = find(s, key);
    n = find_name(s, key, name, &hash);
    if (shard && n && s->names && alone(slot_of(s, key), asked)) {
        DL_DELETE(shard->list, n);
        HASH_DEL(s->names, n);
        free(n);
    }
    pthread_mutex_unlock(&s->mutex);
}

void mfs_shards_revoke(struct mfs_shards *s, uint64_t dir, uint32_t part)
{
    struct shard_key key = {dir, part};

    pthread_mutex_lock(&s->mutex);
    forget(s, find(s, key));
    slot_of(s, key)->changed = mfs_clock_mono(); /* with the lock: it never goes back */
    pthread_mutex_unlock(&s->mutex);
}

void mfs_shards_giving(struct mfs_shards *s, uint64_t dir, uint32_t part)
{
    struct shard_key key = {dir, part};

    pthread_mutex_lock(&s->mutex);
    forget(s, find(s, key));
    slot_of(s, key)->adding++;
    pthread_mutex_unlock(&s->mutex);
}

static void end_giving(struct mfs_shards *s, uint64_t dir, uint32_t part, bool lost)
{
    struct slot *slot = slot_of(s, (struct shard_key){dir, part});

    pthread_mutex_lock(&s->mutex);
    assert(slot->adding > 0);
    slot->adding--;
    slot->lost = slot->lost || lost;
    slot->changed = mfs_clock_mono();
    pthread_mutex_unlock(&s->mutex);
}

void mfs_shards_given(struct mfs_shards *s, uint64_t dir, uint32_t part)
{
    end_giving(s, dir, part, false);
}

void mfs_shards_lost(struct mfs_shards *s, uint64_t dir, uint32_t part)
{
    end_giving(s, dir, part, true);
}

void mfs_shards_renewed(struct mfs_shards *s)
{
    pthread_mutex_lock(&s->mutex);
    for (unsigned i = 0; i < SLOTS; i++)
        s->slot[i].lost = false;
    pthread_mutex_unlock(&s->mutex);
}

void mfs_shards_revoke_all(struct mfs_shards *s)
{
    int64_t now;

    pthread_mutex_lock(&s->mutex);
    now = mfs_clock_mono();
    forget_all(s);
    for (unsigned i = 0; i < SLOTS; i++)
        s->slot[i].changed = now;
    pthread_mutex_unlock(&s->mutex);
}
