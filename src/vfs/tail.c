#include "vfs/tail.h"

#include "base/clock.h"

/* From our answer to the reader's copy; as a rule some 10 us. */
#define ON_ITS_WAY (10 * MFS_MSEC)
#define LOOK       (MFS_MSEC / 10)

static _Thread_local uint32_t caller;

void mfs_vfs_act_for(uint32_t thread)
{
    caller = thread;
}

/* Who asks for more has taken what he asked for before. */
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
    known = v->known;
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

void mfs_tail_tell(struct mfs_vnode *v, uint64_t size)
{
    int64_t end = mfs_clock_mono() + ON_ITS_WAY;
    bool grows = size > atomic_load(&v->tail.told);

    while (wait_for(v, size) > 0 && grows && mfs_clock_mono() < end)
        mfs_clock_sleep(LOOK);
    atomic_store(&v->tail.told, size);
}

void mfs_tail_made(struct mfs_vnode *v, uint64_t end, bool exactly)
{
    if (exactly || end > atomic_load(&v->tail.told))
        atomic_store(&v->tail.told, end);
}
