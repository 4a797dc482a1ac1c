/* fcntl locks and flock: what this mount does around them, so that a process that gets a lock sees
 * what was written under it, and one that gives it up has made its writes known. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "vfs/file.h"
#include "base/log.h"
#include "vfs/locks/lock_owners.h"
#include "vfs/locks/lock_wait.h"

#define GOING_NAP (MFS_MSEC / 4)
#define GETLK_NAP                                                                                  \
    (16 * MFS_MSEC) /* at most, between two looks at a holder that has just closed                 \
                     */

int mfs_vfs_getlk(struct mfs_file *f, struct mfs_lock *lock)
{
    int64_t end = mfs_clock_mono() + MFS_VFS_LOCK_CLOSING;
    struct mfs_lock asked = *lock;
    struct mfs_lock_holder holder;
    int rc;

    for (int64_t nap = MFS_MSEC;; nap = nap < GETLK_NAP ? 2 * nap : nap) {
        *lock = asked;
        rc = mfs_meta_getlk(f->node->vfs->meta, f->node->ino, lock, &holder);
        if (rc < 0 || lock->type == F_UNLCK || !holder.closing || mfs_clock_mono() + nap > end)
            return rc;
        mfs_clock_sleep(nap);
    }
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

static void note_flock(struct mfs_file *f, bool held)
{
    pthread_mutex_lock(&f->node->lock);
    f->flocked = held;
    pthread_mutex_unlock(&f->node->lock);
}

static bool may_have_flock(struct mfs_file *f)
{
    bool held;

    pthread_mutex_lock(&f->node->lock);
    held = f->flocked;
    pthread_mutex_unlock(&f->node->lock);
    return held;
}

static int unlock(struct mfs_file *f, const struct mfs_lock *lock, bool flock)
{
    struct mfs_vnode *v = f->node;
    struct mfs_meta *meta = v->vfs->meta;
    struct mfs_attr attr;
    int rc;

    mfs_vnode_flush(v, NULL);
    mfs_meta_settle(meta, v->ino);
    if (flock)
        rc = mfs_meta_flock(meta, v->ino, f->flock_owner, F_UNLCK, &attr, NULL);
    else
        rc = mfs_meta_setlk(meta, v->ino, lock, &attr, NULL);
    if (flock && rc == 0)
        note_flock(f, false);
    mfs_lock_wait_kick(v->vfs->waits, v->ino);
    return rc;
}

/* --- owners of fcntl locks ------------------------------------------------------------------- */

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

static int unlock_all(struct mfs_vnode *v, uint64_t owner)
{
    struct mfs_lock all = {.type = F_UNLCK, .start = 0, .end = INT64_MAX, .owner = owner};
    struct mfs_attr attr;
    int rc;

    mfs_vnode_flush(v, NULL);
    mfs_meta_settle(v->vfs->meta, v->ino);
    rc = mfs_meta_setlk(v->vfs->meta, v->ino, &all, &attr, NULL);
    mfs_lock_wait_kick(v->vfs->waits, v->ino);
    return rc == -ESTALE ? 0 : rc;
}

int mfs_file_unlock_owner(struct mfs_file *f, uint64_t owner)
{
    struct mfs_vnode *v = f->node;
    bool owned;

    pthread_mutex_lock(&v->lock);
    owned = mfs_owner_drop_id(v, owner);
    pthread_mutex_unlock(&v->lock);
    return owned ? unlock_all(v, owner) : 0;
}

/* Which of the owners is the open file itself, and not another process that shares it, is not
 * known. *owners is for the caller to free. Their number, or -ENOMEM. */
static ssize_t owners_but(struct mfs_file *f, uint64_t closer, uint64_t **owners)
{
    struct mfs_owner *o;
    size_t n;
    ssize_t k = 0;

    *owners = NULL;
    pthread_mutex_lock(&f->node->lock);
    DL_COUNT(f->owners, o, n);
    if (f->flocked || n > 1 || (n == 1 && f->owners->id != closer)) {
        *owners = malloc((n + 1) * sizeof **owners);
        if (*owners == NULL)
            k = -ENOMEM;
    }
    if (*owners != NULL) {
        if (f->flocked)
            (*owners)[k++] = f->flock_owner;
        DL_FOREACH(f->owners, o)
        if (o->id != closer)
            (*owners)[k++] = o->id;
    }
    pthread_mutex_unlock(&f->node->lock);
    return k;
}

void mfs_file_closing(struct mfs_file *f, uint64_t owner)
{
    struct mfs_vnode *v = f->node;
    uint64_t *owners;
    ssize_t n = owners_but(f, owner, &owners);
    int rc = (int)n;

    if (n > 0)
        rc = mfs_meta_closing(v->vfs->meta, v->ino, owners, (size_t)n);
    if (rc < 0)
        mfs_warn("vfs", "inode %llx: locks of a closed file: %s", (unsigned long long)v->ino,
                 strerror(-rc));
    free(owners);
}

/* If there is another handle with locks by what the kernel calls by the same number, they are not
 * ours to give back: either it is a process, which closes the other, too, or a newer open file.
 * False: no owner is left. */
static bool unlock_one_of(struct mfs_file *f)
{
    struct mfs_vnode *v = f->node;
    struct mfs_owner *o;
    uint64_t id = 0;
    bool any, ours = false;

    pthread_mutex_lock(&v->lock);
    o = f->owners;
    any = o != NULL;
    if (any) {
        id = o->id;
        ours = !mfs_owner_is_shared(o);
    }
    if (ours)
        mfs_owner_begin_release(o);
    else
        mfs_owner_drop(o);
    pthread_mutex_unlock(&v->lock);
    if (!ours)
        return any;
    unlock_all(v, id);
    pthread_mutex_lock(&v->lock);
    mfs_owner_drop(mfs_owner_find(f, id));
    pthread_mutex_unlock(&v->lock);
    return true;
}

void mfs_file_unlock_rest(struct mfs_file *f)
{
    struct mfs_attr attr;

    if (may_have_flock(f))
        mfs_meta_flock(f->node->vfs->meta, f->node->ino, f->flock_owner, F_UNLCK, &attr, NULL);
    while (unlock_one_of(f)) { /* no other thread uses a handle at its last close */
    }
}

/* --- taking ---------------------------------------------------------------------------------- */

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
        rc = mfs_meta_flock(v->vfs->meta, v->ino, f->flock_owner, lock->type, attr, holder);
        if (rc != -EAGAIN) /* after an error it may be held, too */
            note_flock(f, true);
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

int mfs_vfs_setlk(struct mfs_file *f, const struct mfs_lock *lock, bool flock,
                  mfs_vfs_lock_fn *done, void *arg)
{
    int rc;

    mfs_file_answer_taken(f);
    if (lock->type == F_UNLCK)
        return unlock(f, lock, flock);
    rc = mfs_file_try_lock(f, lock, flock, NULL, done, arg);
    /* As flock(2) says: to convert a lock is to give up the old one first. Two holders of shared
     * locks that both want to write would wait for each other. */
    if ((rc == -EAGAIN || rc == -EBUSY) && flock && may_have_flock(f))
        unlock(f, lock, true);
    return rc;
}
