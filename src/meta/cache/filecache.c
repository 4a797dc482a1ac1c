/* What this client knows of files under leases: which inode a name means, and attributes of inodes.
 * A file has as many names here as are known of it, each for its own time; it goes with the last of
 * them. Bounded; the oldest name goes first. */
#include "meta/internal.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "meta/cache/filecache_impl.h"
#include "meta/cache/name_key.h"

#define MOST_DEFAULT 65536U

struct mfs_filecache *mfs_filecache_create(uint32_t most)
{
    struct mfs_filecache *cache = calloc(1, sizeof *cache);

    if (cache) {
        pthread_mutex_init(&cache->mutex, NULL);
        cache->most = most ? most : MOST_DEFAULT;
    }
    return cache;
}

static void drop_dir_if_empty(struct mfs_filecache *cache, struct dir *d)
{
    if (d->list)
        return;
    HASH_DEL(cache->dirs, d);
    free(d);
}

/* Its file stays, maybe without a name. */
static void take_name(struct mfs_filecache *cache, struct name *n)
{
    struct dir *d = n->dir;

    assert(cache->names);
    DL_DELETE(n->file->list, n);
    DL_DELETE2(d->list, n, dir_prev, dir_next);
    drop_dir_if_empty(cache, d);
    HASH_DEL(cache->names, n);
    free(n);
}

void mfs_filecache_drop(struct mfs_filecache *cache, struct file *f)
{
    if (!f)
        return;
    while (f->list)
        take_name(cache, f->list);
    HASH_DEL(cache->files, f);
    free(f);
}

static void drop_name(struct mfs_filecache *cache, struct name *n)
{
    struct file *f = n ? n->file : NULL;

    if (!n)
        return;
    take_name(cache, n);
    if (!f->list)
        mfs_filecache_drop(cache, f);
}

static void drop_all(struct mfs_filecache *cache)
{
    while (cache->files)
        mfs_filecache_drop(cache, cache->files);
}

void mfs_filecache_destroy(struct mfs_filecache *cache)
{
    if (!cache)
        return;
    drop_all(cache);
    pthread_mutex_destroy(&cache->mutex);
    free(cache);
}

struct file *mfs_filecache_find(struct mfs_filecache *cache, uint64_t ino)
{
    struct file *f;

    HASH_FIND(hh, cache->files, &ino, sizeof ino, f);
    return f;
}

static struct name *by_name(struct mfs_filecache *cache, uint64_t parent, const char *name)
{
    char key[MFS_NAME_KEY_MAX];
    size_t len = mfs_name_key(key, parent, name);
    struct name *n;

    HASH_FIND(hh, cache->names, key, len, n);
    return n;
}

static bool take(struct mfs_filecache *cache, struct file *f, struct mfs_attr *attr)
{
    if (!f)
        return false;
    f->used = mfs_clock_mono();
    if (f->used >= f->until) {
        mfs_filecache_drop(cache, f);
        return false;
    }
    *attr = f->attr;
    return true;
}

bool mfs_filecache_name(struct mfs_filecache *cache, uint64_t parent, const char *name,
                        struct mfs_attr *attr)
{
    struct name *n;
    bool found;

    pthread_mutex_lock(&cache->mutex);
    n = by_name(cache, parent, name);
    if (n && mfs_clock_mono() >= n->until) {
        drop_name(cache, n);
        n = NULL;
    }
    found = n && take(cache, n->file, attr);
    pthread_mutex_unlock(&cache->mutex);
    return found;
}

bool mfs_filecache_attr(struct mfs_filecache *cache, uint64_t ino, struct mfs_attr *attr)
{
    bool found;

    pthread_mutex_lock(&cache->mutex);
    found = take(cache, mfs_filecache_find(cache, ino), attr);
    pthread_mutex_unlock(&cache->mutex);
    return found;
}

bool mfs_filecache_a_name(struct mfs_filecache *cache, uint64_t ino, uint64_t *parent, char *name)
{
    const struct file *f;

    pthread_mutex_lock(&cache->mutex);
    f = mfs_filecache_find(cache, ino);
    if (f) {
        *parent = f->list->dir->ino;
        memcpy(name, f->list->key + sizeof *parent, f->list->key_len - sizeof *parent);
        name[f->list->key_len - sizeof *parent] = '\0';
    }
    pthread_mutex_unlock(&cache->mutex);
    return f != NULL;
}

static int64_t *revoked(struct mfs_filecache *cache, uint64_t ino)
{
    return &cache->revoked[mfs_filecache_slot(ino)];
}

/* May an answer to what was asked at `asked` be from before a change, or a lease's end? */
static bool is_late(struct mfs_filecache *cache, uint64_t ino, int64_t asked)
{
    uint32_t slot = mfs_filecache_slot(ino);

    return cache->revoked[slot] >= asked || cache->giving[slot] || cache->lost[slot];
}

static struct dir *find_or_add_dir(struct mfs_filecache *cache, uint64_t ino)
{
    struct dir *d;

    HASH_FIND(hh, cache->dirs, &ino, sizeof ino, d);
    if (d || !(d = calloc(1, sizeof *d)))
        return d;
    d->ino = ino;
    HASH_ADD(hh, cache->dirs, ino, sizeof d->ino, d);
    if (!d->hh.tbl) {
        free(d);
        return NULL;
    }
    return d;
}

static struct file *find_or_add(struct mfs_filecache *cache, uint64_t ino)
{
    struct file *f = mfs_filecache_find(cache, ino);

    if (f)
        return f;
    f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->attr.ino = ino;
    HASH_ADD(hh, cache->files, attr.ino, sizeof f->attr.ino, f);
    if (!f->hh.tbl) {
        free(f);
        return NULL;
    }
    return f;
}

/* The name means the file, which was asked for then. */
static void add_name(struct mfs_filecache *cache, uint64_t parent, const char *name, struct file *f,
                     int64_t asked)
{
    struct name *n = by_name(cache, parent, name);
    char key[MFS_NAME_KEY_MAX];
    size_t len = mfs_name_key(key, parent, name);
    struct name *oldest;

    if (n && n->file == f)
        take_name(cache, n);
    else
        drop_name(cache, n);
    oldest = HASH_COUNT(cache->names) >= cache->most ? cache->names : NULL;
    if (oldest && oldest->file == f)
        take_name(cache, oldest);
    else
        drop_name(cache, oldest);
    n = malloc(sizeof *n + len);
    if (n)
        n->dir = find_or_add_dir(cache, parent);
    if (!n || !n->dir) {
        free(n);
        return;
    }
    n->file = f;
    n->until = asked + MFS_META_LEASE_FILE;
    n->key_len = len;
    memcpy(n->key, key, len);
    HASH_ADD_KEYPTR(hh, cache->names, n->key, n->key_len, n);
    if (!n->hh.tbl) {
        drop_dir_if_empty(cache, n->dir);
        free(n);
        return;
    }
    DL_APPEND(f->list, n);
    DL_APPEND2(n->dir->list, n, dir_prev, dir_next);
}

static void set_attr(struct file *f, const struct mfs_attr *attr, int64_t asked)
{
    f->attr = *attr;
    f->attr.leased = 0;
    f->until = asked + MFS_META_LEASE_FILE;
    f->learned = f->used = mfs_clock_mono();
}

static void add(struct mfs_filecache *cache, uint64_t parent, const char *name,
                const struct mfs_attr *attr, int64_t asked)
{
    struct file *f = find_or_add(cache, attr->ino);

    if (!f)
        return;
    set_attr(f, attr, asked);
    add_name(cache, parent, name, f, asked);
    if (!f->list)
        mfs_filecache_drop(cache, f);
}

/* Is it not known which is newer, an answer to what was asked at `asked` or what is known? */
static bool is_unsure(struct mfs_filecache *cache, uint64_t ino, const struct file *known,
                      int64_t asked)
{
    return is_late(cache, ino, asked) || (known && known->learned >= asked);
}

void mfs_filecache_put(struct mfs_filecache *cache, uint64_t parent, const char *name,
                       const struct mfs_attr *attr, int64_t asked)
{
    struct file *known;

    pthread_mutex_lock(&cache->mutex);
    known = mfs_filecache_find(cache, attr->ino);
    if (!is_unsure(cache, attr->ino, known, asked))
        add(cache, parent, name, attr, asked);
    else if (known && memcmp(&known->attr, attr, sizeof *attr) != 0)
        mfs_filecache_drop(cache, known);
    pthread_mutex_unlock(&cache->mutex);
}

void mfs_filecache_update(struct mfs_filecache *cache, const struct mfs_attr *attr, int64_t asked)
{
    int64_t *floor = revoked(cache, attr->ino);
    struct file *f;

    pthread_mutex_lock(&cache->mutex);
    f = mfs_filecache_find(cache, attr->ino);
    if (f && *floor >= asked)
        mfs_filecache_drop(cache, f);
    else if (f && f->attr.version < attr->version)
        f->attr = *attr;
    *floor = mfs_clock_mono(); /* looks under way may have been before it */
    pthread_mutex_unlock(&cache->mutex);
}

void mfs_filecache_changed(struct mfs_filecache *cache, const struct mfs_attr *attr, int64_t asked)
{
    struct file *f;

    pthread_mutex_lock(&cache->mutex);
    f = mfs_filecache_find(cache, attr->ino);
    if (is_unsure(cache, attr->ino, f, asked)) {
        mfs_filecache_drop(cache, f);
    } else if (f) {
        f->attr = *attr;
        f->attr.leased = 0;
    }
    *revoked(cache, attr->ino) = mfs_clock_mono(); /* likewise */
    pthread_mutex_unlock(&cache->mutex);
}

void mfs_filecache_add_name(struct mfs_filecache *cache, uint64_t parent, const char *name,
                            uint64_t ino, int64_t asked)
{
    struct file *f;

    pthread_mutex_lock(&cache->mutex);
    f = mfs_filecache_find(cache, ino);
    if (f && !is_late(cache, ino, asked))
        add_name(cache, parent, name, f, asked);
    if (f && !f->list)
        mfs_filecache_drop(cache, f);
    pthread_mutex_unlock(&cache->mutex);
}

void mfs_filecache_drop_name(struct mfs_filecache *cache, uint64_t parent, const char *name)
{
    pthread_mutex_lock(&cache->mutex);
    drop_name(cache, by_name(cache, parent, name));
    pthread_mutex_unlock(&cache->mutex);
}

void mfs_filecache_atime(struct mfs_filecache *cache, uint64_t ino, struct timespec atime)
{
    struct file *f;

    pthread_mutex_lock(&cache->mutex);
    f = mfs_filecache_find(cache, ino);
    if (f && mfs_timespec_cmp(f->attr.atime, atime) < 0)
        f->attr.atime = atime;
    pthread_mutex_unlock(&cache->mutex);
}

/* What was asked for before now must not take its place: it may be older still. Lock held. */
static void withdraw(struct mfs_filecache *cache, struct file *f)
{
    *revoked(cache, f->attr.ino) = mfs_clock_mono();
    mfs_filecache_drop(cache, f);
}

void mfs_filecache_forget(struct mfs_filecache *cache, uint64_t parent, const char *name,
                          uint64_t ino)
{
    struct name *n;

    pthread_mutex_lock(&cache->mutex);
    n = by_name(cache, parent, name);
    if (n && n->file->attr.ino != ino)
        withdraw(cache, n->file);
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
    f = mfs_filecache_find(cache, attr->ino);
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
        mfs_filecache_drop(cache, mfs_filecache_find(cache, ino));
    }
    pthread_mutex_unlock(&cache->mutex);
}
