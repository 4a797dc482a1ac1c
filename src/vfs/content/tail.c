#include "vfs/content/tail.h"

#include "base/clock.h"

/* From our answer to the reader's copy; as a rule some 10 us. */
#define ON_ITS_WAY (50 * MFS_MSEC)
#define DROP_WAIT  (100 * MFS_MSEC)
#define LOOK       (MFS_MSEC / 10)

static _Thread_local uint32_t caller;

void mfs_vfs_act_for(uint32_t thread)
{
    caller = thread;
}

/* A reader that asks for more has taken what it asked for before. */
static void taken(struct mfs_vnode *v)
{
    if (caller != 0 && v->tail.reader == caller)
        v->tail.read_at = 0;
}

bool mfs_tail_read(struct mfs_vnode *v, uint64_t size)
{
    int64_t now = mfs_clock_mono();
    bool known;

    if (size % MFS_TAIL_PAGE == 0)
        return true; /* no page has anything behind the end */
    pthread_mutex_lock(&v->lock);
    taken(v);
    if (v->tail.read_at == 0 || now - v->tail.read_at > ON_ITS_WAY) {
        v->tail.size = size;
        v->tail.reader = caller;
    } else {
        /* Of several the one of the smallest size is in the most danger. */
        v->tail.size = size < v->tail.size ? size : v->tail.size;
        v->tail.reader = 0;
    }
    v->tail.read_at = now;
    known = v->known && v->attr.size <= size;
    pthread_mutex_unlock(&v->lock);
    return known;
}

/* How long to wait yet, ns. */
static int64_t wait_for(struct mfs_vnode *v, uint64_t size)
{
    int64_t rest = 0;

    pthread_mutex_lock(&v->lock);
    taken(v);
    if (v->tail.read_at != 0 && v->tail.size < size)
        rest = v->tail.read_at + ON_ITS_WAY - mfs_clock_mono();
    pthread_mutex_unlock(&v->lock);
    return rest;
}

void mfs_tail_dropped(struct mfs_vnode *v, uint64_t size)
{
    int64_t end = mfs_clock_mono() + ON_ITS_WAY;

    while (wait_for(v, size) > 0 && mfs_clock_mono() < end)
        mfs_clock_sleep(LOOK);
    mfs_tail_made(v, size, false);
}

void mfs_tail_tell(struct mfs_vnode *v, uint64_t *size)
{
    uint64_t told = atomic_load(&v->tail.told);

    pthread_mutex_lock(&v->lock);
    taken(v);
    pthread_mutex_unlock(&v->lock);
    /* A file that ends with its page has no zeros behind the end. */
    if (*size > told && told % MFS_TAIL_PAGE != 0 && !mfs_vnode_drop_pages_wait(v, DROP_WAIT))
        *size = told;
    atomic_store(&v->tail.told, *size);
}

void mfs_tail_made(struct mfs_vnode *v, uint64_t end, bool exactly)
{
    uint64_t told = atomic_load(&v->tail.told);

    while ((exactly || end > told) && !atomic_compare_exchange_weak(&v->tail.told, &told, end))
        ;
}
