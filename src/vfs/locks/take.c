/* A lock is asked for at the file's home, taken when the home says so, and granted when the kernel
 * has dropped the pages from before: at once if it has none, or none that are older than the lock.
 * Invariant: the owner of an fcntl lock is noted (lock_owners.h) before the lock is asked for. */
#include "vfs/locks/take.h"

#include <errno.h>
#include <stdlib.h>

#include "vfs/locks/lock_owners.h"

#define GOING_NAP (MFS_MSEC / 4)

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

void mfs_file_note_flock(struct mfs_file *f, bool held)
{
    pthread_mutex_lock(&f->node->lock);
    f->flocked = held;
    pthread_mutex_unlock(&f->node->lock);
}

bool mfs_file_may_have_flock(struct mfs_file *f)
{
    bool held;

    pthread_mutex_lock(&f->node->lock);
    held = f->flocked;
    pthread_mutex_unlock(&f->node->lock);
    return held;
}

/* Noted before the lock is asked for, so that no lock is ever without. The kernel calls an open
 * file by the number of one whose release is on its way: what is given back there would be the new
 * one's lock. */
static int own(struct mfs_file *f, uint64_t owner)
{
    int rc;

    pthread_mutex_lock(&f->node->lock);
    while (mfs_owner_is_releasing(f->node, owner)) {
        pthread_mutex_unlock(&f->node->lock);
        mfs_clock_sleep(GOING_NAP);
        pthread_mutex_lock(&f->node->lock);
    }
    rc = mfs_owner_add(f, owner);
    pthread_mutex_unlock(&f->node->lock);
    return rc;
}

static int take(struct mfs_file *f, const struct mfs_lock *lock, bool flock,
                struct mfs_meta_wait *wait, struct mfs_attr *attr)
{
    struct mfs_lock_holder unused = {0}, *holder = wait != NULL ? &wait->holder : &unused;
    struct mfs_vnode *v = f->node;
    int rc;

    /* A write lock may be exchanged for a read lock: others will read then. */
    if (lock->type == F_RDLCK)
        mfs_vnode_flush(v, NULL);
    if (flock) {
        rc = mfs_meta_flock(v->vfs->meta, v->ino, f->flock_owner, lock->pid, lock->type, attr,
                            holder);
        if (rc != -EAGAIN) /* after an error it may be held, too */
            mfs_file_note_flock(f, true);
    } else {
        if (own(f, lock->owner) < 0)
            return -ENOMEM;
        rc = mfs_meta_setlk(v->vfs->meta, v->ino, lock, attr, holder);
        if (rc == 0 && wait != NULL)
            mfs_meta_wait_over(v->vfs->meta, wait);
    }
    return rc == -EAGAIN && holder->closing ? -EBUSY : rc;
}

int mfs_file_try_lock(struct mfs_file *f, const struct mfs_lock *lock, bool flock,
                      struct mfs_meta_wait *wait, mfs_vfs_lock_fn *done, void *arg)
{
    struct granted *g = malloc(sizeof *g);
    struct mfs_attr attr;
    int rc;

    if (g == NULL)
        return -ENOMEM;
    *g = (struct granted){.vfs = f->node->vfs, .ino = f->node->ino, .done = done, .arg = arg};
    rc = take(f, lock, flock, wait, &attr);
    if (rc == 0)
        return grant(f, &attr, g);
    free(g);
    return rc;
}
