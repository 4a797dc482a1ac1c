/* fcntl locks and flock: what this mount does around them, so that who gets a lock sees what was
 * written under it, and who gives it up has made his writing known. */
#include <errno.h>
#include <stdlib.h>

#include "vfs/file.h"
#include "vfs/lock_wait.h"

int mfs_vfs_getlk(struct mfs_file *f, struct mfs_lock *lock)
{
    return mfs_meta_getlk(f->node->vfs->meta, f->node->ino, lock);
}

/* A lock that is taken, and whose pages are being dropped. */
struct granted {
    struct mfs_vfs *vfs;
    uint64_t ino;
    struct mfs_pages_ticket ticket;
    mfs_vfs_lock_fn *done;
    void *arg;
};

static void dropped(void *arg)
{
    struct granted *g = arg;

    mfs_pages_adopt(g->vfs->pages, g->ino, &g->ticket);
    g->done(g->arg, 0);
    free(g);
}

/* What was cached before the lock may be older than it. Takes over g. */
static int grant(struct mfs_file *f, struct mfs_attr *attr, struct granted *g)
{
    struct mfs_vnode *v = f->node;
    struct mfs_vfs *vfs = v->vfs;

    mfs_vnode_learn(v, attr, false);
    if (vfs->invalidate == NULL || mfs_pages_open(vfs->pages, v->ino, attr->version, &g->ticket)) {
        free(g);
        return 0;
    }
    mfs_vnode_changed(v);
    vfs->invalidate(vfs->invalidate_arg, v->ino, dropped, g);
    return -EINPROGRESS;
}

static int unlock(struct mfs_file *f, const struct mfs_lock *lock, bool flock)
{
    struct mfs_vnode *v = f->node;
    struct mfs_meta *meta = v->vfs->meta;
    struct mfs_attr attr;
    int rc;

    mfs_vnode_flush_keep(v);
    if (flock)
        rc = mfs_meta_flock(meta, v->ino, lock->owner, F_UNLCK, &attr);
    else
        rc = mfs_meta_setlk(meta, v->ino, lock, &attr);
    mfs_lock_wait_kick(v->vfs->waits, v->ino);
    return rc;
}

static int take(struct mfs_file *f, const struct mfs_lock *lock, bool flock, struct mfs_attr *attr)
{
    struct mfs_vnode *v = f->node;

    /* A write lock may be exchanged for a read lock: others will read then. */
    if (lock->type == F_RDLCK)
        mfs_vnode_flush_keep(v);
    if (flock)
        return mfs_meta_flock(v->vfs->meta, v->ino, lock->owner, lock->type, attr);
    atomic_store(&v->posix_locks, true);
    return mfs_meta_setlk(v->vfs->meta, v->ino, lock, attr);
}

int mfs_file_try_lock(struct mfs_file *f, const struct mfs_lock *lock, bool flock,
                      mfs_vfs_lock_fn *done, void *arg)
{
    struct granted *g = malloc(sizeof *g);
    struct mfs_attr attr;
    int rc;

    if (g == NULL)
        return -ENOMEM;
    *g = (struct granted){.vfs = f->node->vfs, .ino = f->node->ino, .done = done, .arg = arg};
    rc = take(f, lock, flock, &attr);
    if (rc == 0)
        return grant(f, &attr, g);
    free(g);
    return rc;
}

int mfs_vfs_setlk(struct mfs_file *f, const struct mfs_lock *lock, bool flock,
                  mfs_vfs_lock_fn *done, void *arg)
{
    int rc;

    mfs_file_proved(f);
    if (lock->type == F_UNLCK)
        return unlock(f, lock, flock);
    rc = mfs_file_try_lock(f, lock, flock, done, arg);
    /* As flock(2) says: to convert a lock is to give up the old one first. Two holders of shared
     * locks who both want to write would wait for each other. */
    if (rc == -EAGAIN && flock)
        unlock(f, lock, true);
    return rc;
}
