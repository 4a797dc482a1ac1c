#include "vfs/vnode/latch.h"

#include "base/clock.h"
#include "base/threads/thread.h"

int mfs_latch_init(struct mfs_latch *l)
{
    int rc = mfs_cond_init(&l->changed);

    if (rc == 0)
        pthread_mutex_init(&l->lock, NULL);
    l->inside = 0;
    l->closed = false;
    return rc;
}

void mfs_latch_fini(struct mfs_latch *l)
{
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
}

void mfs_latch_enter(struct mfs_latch *l)
{
    pthread_mutex_lock(&l->lock);
    while (l->closed)
        mfs_cond_wait(&l->changed, &l->lock, MFS_SEC);
    l->inside++;
    pthread_mutex_unlock(&l->lock);
}

void mfs_latch_leave(struct mfs_latch *l)
{
    pthread_mutex_lock(&l->lock);
    if (--l->inside == 0 && l->closed)
        pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

void mfs_latch_close(struct mfs_latch *l)
{
    pthread_mutex_lock(&l->lock);
    while (l->closed)
        mfs_cond_wait(&l->changed, &l->lock, MFS_SEC);
    l->closed = true;
    while (l->inside > 0)
        mfs_cond_wait(&l->changed, &l->lock, MFS_SEC);
    pthread_mutex_unlock(&l->lock);
}

void mfs_latch_open(struct mfs_latch *l)
{
    pthread_mutex_lock(&l->lock);
    l->closed = false;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}
