#include "vfs/content/fills.h"

#include <assert.h>

#include "base/clock.h"

#define PAGE       4096U
#define RANGES_MAX 64U /* more are taken for one */
/* From the kernel's copy of a write to its arrival here; as a rule some 10 us. */
#define ON_ITS_WAY (2 * MFS_SEC)

static struct mfs_range pages_of(uint64_t off, size_t len)
{
    return (struct mfs_range){off / PAGE * PAGE, (off + len + PAGE - 1) / PAGE * PAGE};
}

void mfs_fills_read(struct mfs_vnode *v, uint64_t off, size_t len)
{
    struct mfs_ranges *r = &v->fills.ranges;
    struct mfs_range pages = pages_of(off, len);

    pthread_mutex_lock(&v->lock);
    if (mfs_ranges_add(r, pages.lo, pages.hi) < 0 || r->n > RANGES_MAX)
        mfs_ranges_add(r, 0, INT64_MAX); /* merges all, and needs no memory */
    pthread_mutex_unlock(&v->lock);
}

void mfs_fills_append_moved(struct mfs_vnode *v)
{
    pthread_mutex_lock(&v->lock);
    v->fills.append_moved = true;
    pthread_mutex_unlock(&v->lock);
}

/* v->lock is held. */
static bool take(struct mfs_ranges *r, const struct mfs_range *pages)
{
    uint32_t i = mfs_ranges_behind(r, pages->lo);
    bool any = i < r->n && r->v[i].lo < pages->hi;

    if (any)
        mfs_ranges_take(r, pages->lo, pages->hi); /* else it is dropped once more the next time */
    return any;
}

bool mfs_fills_direct_written(struct mfs_vnode *v, uint64_t off, size_t len, struct mfs_range *drop)
{
    bool any;

    *drop = pages_of(off, len);
    pthread_mutex_lock(&v->lock);
    if (v->fills.append_moved)
        *drop = (struct mfs_range){0, INT64_MAX};
    v->fills.append_moved = false;
    /* What another write has being dropped, and was read before this one, is not gone yet. */
    any = take(&v->fills.ranges, drop) || v->fills.dropping > 0;
    v->fills.dropping += any;
    pthread_mutex_unlock(&v->lock);
    if (any)
        mfs_fills_invalidated(v, NULL);
    return any;
}

void mfs_fills_direct_dropped(struct mfs_vnode *v)
{
    pthread_mutex_lock(&v->lock);
    assert(v->fills.dropping > 0);
    v->fills.dropping--;
    pthread_mutex_unlock(&v->lock);
    mfs_fills_invalidated(v, NULL);
}

void mfs_fills_invalidated(struct mfs_vnode *v, const struct mfs_file *dropper)
{
    int64_t now = mfs_clock_mono();

    pthread_mutex_lock(&v->lock);
    if (now < v->fills.dropped_at + ON_ITS_WAY && v->fills.dropper != dropper)
        dropper = NULL;
    v->fills.dropper = dropper;
    v->fills.dropped_at = now;
    pthread_mutex_unlock(&v->lock);
}

bool mfs_fills_cached_written(struct mfs_vnode *v, const struct mfs_file *f, uint64_t off,
                              size_t len, int64_t since, struct mfs_range *drop)
{
    bool any;

    *drop = pages_of(off, len);
    pthread_mutex_lock(&v->lock);
    any = since < v->fills.dropped_at + ON_ITS_WAY && v->fills.dropper != f &&
          take(&v->fills.ranges, drop);
    pthread_mutex_unlock(&v->lock);
    return any;
}
