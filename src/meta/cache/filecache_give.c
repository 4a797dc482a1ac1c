/* Leases of files that are given back: what is known of the files meanwhile, which is nothing. */
#include "meta/cache/filecache_impl.h"

#include <assert.h>
#include <string.h>
#include <utlist.h>

uint64_t mfs_filecache_revoke_idle(struct mfs_filecache *cache, uint64_t ino, int64_t idle)
{
    uint64_t dir = 0;
    struct file *f;
    int64_t now;

    pthread_mutex_lock(&cache->mutex);
    now = mfs_clock_mono();
    f = mfs_filecache_find(cache, ino);
    if (f && now - f->used >= idle)
        dir = f->list->dir->ino;
    cache->revoked[mfs_filecache_slot(ino)] = now;
    mfs_filecache_drop(cache, f);
    pthread_mutex_unlock(&cache->mutex);
    return dir;
}

/* Takes the file off for its lease to be given back. False: it was refused. */
static bool give(struct mfs_filecache *cache, struct file *f, mfs_filecache_give_fn *fn, void *arg)
{
    uint32_t slot = mfs_filecache_slot(f->attr.ino);
    struct name *n;

    if (cache->giving[slot] == UINT16_MAX)
        return false;
    DL_FOREACH(f->list, n)
    {
        if (!fn(arg, f->attr.ino, n->dir->ino, n->key + sizeof n->dir->ino,
                n->key_len - sizeof n->dir->ino))
            return false;
    }
    cache->giving[slot]++;
    mfs_filecache_drop(cache, f);
    return true;
}

void mfs_filecache_give(struct mfs_filecache *cache, uint64_t dir, int64_t idle, size_t most,
                        mfs_filecache_give_fn *fn, void *arg)
{
    struct name *n, *next;
    struct dir *d;
    size_t looks = 2 * most;
    int64_t now;

    pthread_mutex_lock(&cache->mutex);
    now = mfs_clock_mono();
    HASH_FIND(hh, cache->dirs, &dir, sizeof dir, d);
    for (n = d ? d->list : NULL; n && most && looks; n = next, looks--) {
        struct file *f = n->file;

        for (next = n->dir_next; next && next->file == f;)
            next = next->dir_next; /* which goes with it */
        if (now - f->used < idle)
            continue;
        most -= give(cache, f, fn, arg);
    }
    pthread_mutex_unlock(&cache->mutex);
}

static void end(struct mfs_filecache *cache, uint64_t ino, bool lost)
{
    uint32_t slot = mfs_filecache_slot(ino);

    pthread_mutex_lock(&cache->mutex);
    assert(cache->giving[slot] > 0);
    cache->giving[slot]--;
    if (lost && cache->lost[slot] < UINT16_MAX)
        cache->lost[slot]++;
    cache->revoked[slot] = mfs_clock_mono();
    pthread_mutex_unlock(&cache->mutex);
}

void mfs_filecache_given(struct mfs_filecache *cache, uint64_t ino)
{
    end(cache, ino, false);
}

void mfs_filecache_lost(struct mfs_filecache *cache, uint64_t ino)
{
    end(cache, ino, true);
}

void mfs_filecache_renewed(struct mfs_filecache *cache)
{
    pthread_mutex_lock(&cache->mutex);
    memset(cache->lost, 0, sizeof cache->lost);
    pthread_mutex_unlock(&cache->mutex);
}
