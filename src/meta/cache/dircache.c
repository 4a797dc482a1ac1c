/* What this client knows of directories: their attributes and which partitions hold entries of
 * them, as of the moment they were asked for. Bounded; the oldest entry goes first. */
#include "meta/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/table.h"
#include "meta/cache/cache.h"

#define DIRS_MAX 16384
#define REVOKED  4096U

struct dir {
    uint64_t ino;
    int64_t asked;
    bool leased;
    int64_t registered; /* when the lease was last asked for */
    bool unknown;       /* its lease was revoked, nothing has been heard since */
    int64_t made;       /* by this client, then; 0: by another, or long ago */
    int64_t counted;    /* what was asked for before then may lack a change of this client */
    struct mfs_attr attr;
    unsigned char *bits;
    size_t nbits;
    UT_hash_handle hh;
};

struct mfs_dircache {
    pthread_mutex_t mutex;
    struct dir *dirs; /* under mutex, as is what follows */
    /* When a lease was last revoked, by hash of the ino: so that no answer from before counts after
     * it. */
    int64_t revoked[REVOKED];
};

struct mfs_dircache *mfs_dircache_create(void)
{
    struct mfs_dircache *cache = calloc(1, sizeof *cache);

    if (cache)
        pthread_mutex_init(&cache->mutex, NULL);
    return cache;
}

static void drop(struct mfs_dircache *cache, struct dir *d)
{
    HASH_DEL(cache->dirs, d);
    free(d->bits);
    free(d);
}

void mfs_dircache_destroy(struct mfs_dircache *cache)
{
    if (!cache)
        return;
    while (cache->dirs)
        drop(cache, cache->dirs);
    pthread_mutex_destroy(&cache->mutex);
    free(cache);
}

static struct dir *find(struct mfs_dircache *cache, uint64_t ino)
{
    struct dir *d;

    HASH_FIND(hh, cache->dirs, &ino, sizeof ino, d);
    return d;
}

static struct dir *find_or_add(struct mfs_dircache *cache, uint64_t ino)
{
    struct dir *d = find(cache, ino);

    if (d)
        return d;
    d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->ino = ino;
    d->asked = INT64_MIN;
    if (HASH_COUNT(cache->dirs) >= DIRS_MAX)
        drop(cache, cache->dirs);
    HASH_ADD(hh, cache->dirs, ino, sizeof d->ino, d);
    if (!d->hh.tbl) {
        free(d);
        return NULL;
    }
    return d;
}

/* An answer may be overtaken by a later one. */
static void update(struct dir *d, const struct mfs_attr *attr, const char *bits, size_t nbits,
                   int64_t asked)
{
    if (asked < d->asked || asked <= d->counted)
        return;
    if (nbits != d->nbits) {
        unsigned char *grown = realloc(d->bits, nbits ? nbits : 1);

        if (!grown)
            return;
        d->bits = grown;
        d->nbits = nbits;
    }
    if (nbits)
        memcpy(d->bits, bits, nbits);
    d->attr = *attr;
    d->asked = asked;
    d->unknown = false;
}

void mfs_dircache_put(struct mfs_dircache *cache, const struct mfs_attr *attr, const char *bits,
                      size_t nbits, int64_t asked)
{
    struct dir *d;

    pthread_mutex_lock(&cache->mutex);
    d = find_or_add(cache, attr->ino);
    if (d)
        update(d, attr, bits, nbits, asked);
    pthread_mutex_unlock(&cache->mutex);
}

void mfs_dircache_made(struct mfs_dircache *cache, uint64_t ino)
{
    struct dir *d;

    pthread_mutex_lock(&cache->mutex);
    d = find(cache, ino);
    if (d)
        d->made = mfs_clock_mono();
    pthread_mutex_unlock(&cache->mutex);
}

bool mfs_dircache_is_new(struct mfs_dircache *cache, uint64_t ino)
{
    struct dir *d;
    bool is;

    pthread_mutex_lock(&cache->mutex);
    d = find(cache, ino);
    is = d && d->made && mfs_clock_mono() - d->made < MFS_META_LEASE_FILE;
    pthread_mutex_unlock(&cache->mutex);
    return is;
}

void mfs_dircache_drop(struct mfs_dircache *cache, uint64_t ino)
{
    struct dir *d;

    pthread_mutex_lock(&cache->mutex);
    d = find(cache, ino);
    if (d)
        drop(cache, d);
    pthread_mutex_unlock(&cache->mutex);
}

static bool young(const struct dir *d, int64_t max_age)
{
    return d && !d->unknown && mfs_clock_mono() - d->asked <= max_age;
}

static int64_t *revoked(struct mfs_dircache *cache, uint64_t ino)
{
    return &cache->revoked[mfs_hash64(&ino, sizeof ino, 0) % REVOKED];
}

void mfs_dircache_revoke(struct mfs_dircache *cache, uint64_t ino)
{
    struct dir *d;
    int64_t now;

    pthread_mutex_lock(&cache->mutex);
    now = mfs_clock_mono(); /* with the lock: it never goes back */
    for (unsigned i = 0; ino == 0 && i < REVOKED; i++)
        cache->revoked[i] = now;
    while (ino == 0 && cache->dirs)
        drop(cache, cache->dirs);
    *revoked(cache, ino) = now;
    d = find(cache, ino);
    if (d) {
        d->leased = false;
        d->unknown = true;
    }
    pthread_mutex_unlock(&cache->mutex);
}

void mfs_dircache_counted(struct mfs_dircache *cache, const struct mfs_attr *attr, const char *bits,
                          size_t nbits, int64_t asked)
{
    bool newest; /* no other answer, nor a change, came between question and answer */
    struct dir *d;
    int64_t now;

    pthread_mutex_lock(&cache->mutex);
    now = mfs_clock_mono();
    d = find_or_add(cache, attr->ino);
    newest = d && *revoked(cache, attr->ino) < asked && d->asked <= asked;
    if (d) {
        d->unknown = d->unknown || !newest;
        update(d, attr, bits, nbits, asked);
        d->leased = d->leased && newest;
        d->counted = now;
    }
    *revoked(cache, attr->ino) = now;
    pthread_mutex_unlock(&cache->mutex);
}

bool mfs_dircache_revoked(struct mfs_dircache *cache, uint64_t ino, int64_t since)
{
    bool is;

    pthread_mutex_lock(&cache->mutex);
    is = *revoked(cache, ino) >= since;
    pthread_mutex_unlock(&cache->mutex);
    return is;
}

bool mfs_dircache_lease(struct mfs_dircache *cache, uint64_t ino, int64_t asked)
{
    struct dir *d;
    bool valid;

    pthread_mutex_lock(&cache->mutex);
    valid = *revoked(cache, ino) < asked;
    d = find(cache, ino);
    if (d && valid) {
        d->leased = true;
        d->registered = asked;
    }
    pthread_mutex_unlock(&cache->mutex);
    return valid;
}

bool mfs_dircache_known(struct mfs_dircache *cache, uint64_t ino)
{
    bool known;

    pthread_mutex_lock(&cache->mutex);
    known = find(cache, ino) != NULL;
    pthread_mutex_unlock(&cache->mutex);
    return known;
}

bool mfs_dircache_leased(struct mfs_dircache *cache, uint64_t ino, struct mfs_attr *attr)
{
    struct dir *d;
    bool found;

    pthread_mutex_lock(&cache->mutex);
    d = find(cache, ino);
    found = young(d, MFS_META_LEASE_TIMES) && d->leased;
    if (found)
        *attr = d->attr;
    pthread_mutex_unlock(&cache->mutex);
    return found;
}

bool mfs_dircache_attr(struct mfs_dircache *cache, uint64_t ino, int64_t max_age,
                       struct mfs_attr *attr)
{
    struct dir *d;
    bool found;

    pthread_mutex_lock(&cache->mutex);
    d = find(cache, ino);
    found = young(d, max_age) || (d && d->leased);
    if (found)
        *attr = d->attr;
    pthread_mutex_unlock(&cache->mutex);
    return found;
}

int32_t mfs_dircache_times_set(struct mfs_dircache *cache, uint64_t ino)
{
    int32_t times = -1;
    struct dir *d;

    pthread_mutex_lock(&cache->mutex);
    d = find(cache, ino);
    if (d && d->leased && !d->unknown && mfs_clock_mono() - d->registered < MFS_META_LEASE_FILE)
        times = (int32_t)d->attr.cuts;
    pthread_mutex_unlock(&cache->mutex);
    return times;
}

bool mfs_dircache_bit(struct mfs_dircache *cache, uint64_t ino, uint32_t part, int64_t max_age)
{
    struct dir *d;
    bool found;

    pthread_mutex_lock(&cache->mutex);
    d = find(cache, ino);
    found = young(d, max_age) && mfs_bits_test(d->bits, d->nbits, part);
    pthread_mutex_unlock(&cache->mutex);
    return found;
}

unsigned char *mfs_dircache_bits(struct mfs_dircache *cache, uint64_t ino, size_t *n)
{
    unsigned char *copy = NULL;
    struct dir *d;

    *n = 0;
    pthread_mutex_lock(&cache->mutex);
    d = find(cache, ino);
    if (d && d->nbits)
        copy = malloc(d->nbits);
    if (copy) {
        memcpy(copy, d->bits, d->nbits);
        *n = d->nbits;
    }
    pthread_mutex_unlock(&cache->mutex);
    return copy;
}
