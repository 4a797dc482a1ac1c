/* What this client knows of files under leases: which inode a name means, and its attributes.
 * Bounded; the oldest entry goes first. */
#include "meta/internal.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/hash.h"
#include "meta/cache/cache.h"

#define MOST_DEFAULT 65536U
#define REVOKED      65536U

struct file {
    struct mfs_attr attr;
    int64_t learned, until;
    UT_hash_handle by_name, by_ino;
    size_t key_len; /* of what follows */
    char key[];     /* the parent (8 bytes) and the name */
};

#define KEY_MAX (8 + MFS_NAME_LEN_MAX)

struct mfs_filecache {
    pthread_mutex_t mutex;
    uint32_t most;             /* constant */
    struct file *names, *inos; /* under mutex, as is what follows */
    /* When something was last changed, by hash of the ino: no answer from before counts after it.
     */
    int64_t revoked[REVOKED];
};

struct mfs_filecache *mfs_filecache_create(uint32_t most)
{
    struct mfs_filecache *cache = calloc(1, sizeof *cache);

    if (cache) {
        pthread_mutex_init(&cache->mutex, NULL);
        cache->most = most ? most : MOST_DEFAULT;
    }
    return cache;
}

static void drop(struct mfs_filecache *cache, struct file *f)
{
    if (!f)
        return;
    HASH_DELETE(by_name, cache->names, f);
    HASH_DELETE(by_ino, cache->inos, f);
    free(f);
}

static void drop_all(struct mfs_filecache *cache)
{
    while (cache->names)
        drop(cache, cache->names);
}

void mfs_filecache_destroy(struct mfs_filecache *cache)
{
    if (!cache)
        return;
    drop_all(cache);
    pthread_mutex_destroy(&cache->mutex);
    free(cache);
}

static size_t make_key(char key[KEY_MAX], uint64_t parent, const char *name)
{
    size_t len = strnlen(name, MFS_NAME_LEN_MAX);

    memcpy(key, &parent, sizeof parent);
    memcpy(key + sizeof parent, name, len);
    return sizeof parent + len;
}

static struct file *by_ino(struct mfs_filecache *cache, uint64_t ino)
{
    struct file *f;

    HASH_FIND(by_ino, cache->inos, &ino, sizeof ino, f);
    return f;
}

static bool take(struct mfs_filecache *cache, struct file *f, struct mfs_attr *attr)
{
    if (!f)
        return false;
    if (mfs_clock_mono() >= f->until) {
        drop(cache, f);
        return false;
    }
    *attr = f->attr;
    return true;
}

bool mfs_filecache_name(struct mfs_filecache *cache, uint64_t parent, const char *name,
                        struct mfs_attr *attr)
{
    char key[KEY_MAX];
    size_t len = make_key(key, parent, name);
    struct file *f;
    bool found;

    pthread_mutex_lock(&cache->mutex);
    HASH_FIND(by_name, cache->names, key, len, f);
    found = take(cache, f, attr);
    pthread_mutex_unlock(&cache->mutex);
    return found;
}

bool mfs_filecache_attr(struct mfs_filecache *cache, uint64_t ino, struct mfs_attr *attr)
{
    bool found;

    pthread_mutex_lock(&cache->mutex);
    found = take(cache, by_ino(cache, ino), attr);
    pthread_mutex_unlock(&cache->mutex);
    return found;
}

static int64_t *revoked(struct mfs_filecache *cache, uint64_t ino)
{
    return &cache->revoked[mfs_hash64(&ino, sizeof ino, 0) % REVOKED];
}

static void add(struct mfs_filecache *cache, const char *key, size_t len,
                const struct mfs_attr *attr, int64_t asked)
{
    struct file *f;

    HASH_FIND(by_name, cache->names, key, len, f);
    drop(cache, f);
    if (HASH_CNT(by_name, cache->names) >= cache->most)
        drop(cache, cache->names);
    f = malloc(sizeof *f + len);
    if (!f)
        return;
    f->attr = *attr;
    f->attr.leased = false;
    f->until = asked + MFS_META_LEASE_FILE;
    f->learned = mfs_clock_mono();
    f->key_len = len;
    memcpy(f->key, key, len);
    HASH_ADD_KEYPTR(by_name, cache->names, f->key, f->key_len, f);
    HASH_ADD(by_ino, cache->inos, attr.ino, sizeof f->attr.ino, f);
}

void mfs_filecache_put(struct mfs_filecache *cache, uint64_t parent, const char *name,
                       const struct mfs_attr *attr, int64_t asked)
{
    char key[KEY_MAX];
    size_t len = make_key(key, parent, name);
    struct file *known;
    bool unsure; /* which of the two is newer */

    pthread_mutex_lock(&cache->mutex);
    known = by_ino(cache, attr->ino);
    unsure = *revoked(cache, attr->ino) >= asked || (known && known->learned >= asked);
    if (!unsure || (known && memcmp(&known->attr, attr, sizeof *attr) != 0))
        drop(cache, known);
    if (!unsure)
        add(cache, key, len, attr, asked);
    pthread_mutex_unlock(&cache->mutex);
}

void mfs_filecache_update(struct mfs_filecache *cache, const struct mfs_attr *attr, int64_t asked)
{
    int64_t *floor = revoked(cache, attr->ino);
    struct file *f;

    pthread_mutex_lock(&cache->mutex);
    f = by_ino(cache, attr->ino);
    if (f && *floor >= asked)
        drop(cache, f);
    else if (f && f->attr.version < attr->version)
        f->attr = *attr;
    *floor = mfs_clock_mono(); /* looks under way may have been before it */
    pthread_mutex_unlock(&cache->mutex);
}

void mfs_filecache_atime(struct mfs_filecache *cache, uint64_t ino, struct timespec atime)
{
    struct file *f;

    pthread_mutex_lock(&cache->mutex);
    f = by_ino(cache, ino);
    if (f && mfs_timespec_cmp(f->attr.atime, atime) < 0)
        f->attr.atime = atime;
    pthread_mutex_unlock(&cache->mutex);
}

/* What was asked for before now must not take its place: it may be older still. Lock held. */
static void withdraw(struct mfs_filecache *cache, struct file *f)
{
    *revoked(cache, f->attr.ino) = mfs_clock_mono();
    drop(cache, f);
}

void mfs_filecache_forget(struct mfs_filecache *cache, uint64_t parent, const char *name,
                          uint64_t ino)
{
    char key[KEY_MAX];
    size_t len = make_key(key, parent, name);
    struct file *f;

    pthread_mutex_lock(&cache->mutex);
    HASH_FIND(by_name, cache->names, key, len, f);
    if (f && f->attr.ino != ino)
        withdraw(cache, f);
    pthread_mutex_unlock(&cache->mutex);
}

static bool same(const struct mfs_attr *a, const struct mfs_attr *b)
{
    return a->version == b->version && mfs_timespec_cmp(a->ctime, b->ctime) == 0;
}

void mfs_filecache_compare(struct mfs_filecache *cache, const struct mfs_attr *attr, int64_t asked)
{
    struct file *f;

    pthread_mutex_lock(&cache->mutex);
    f = by_ino(cache, attr->ino);
    if (f && f->learned < asked && !same(&f->attr, attr))
        withdraw(cache, f);
    pthread_mutex_unlock(&cache->mutex);
}

void mfs_filecache_revoke(struct mfs_filecache *cache, uint64_t ino)
{
    int64_t now;

    pthread_mutex_lock(&cache->mutex);
    now = mfs_clock_mono(); /* with the lock: no floor is ever lowered */
    if (ino == 0) {
        for (unsigned i = 0; i < REVOKED; i++)
            cache->revoked[i] = now;
        drop_all(cache);
    } else {
        *revoked(cache, ino) = now;
        drop(cache, by_ino(cache, ino));
    }
    pthread_mutex_unlock(&cache->mutex);
}
