/* What was written is stored and committed before a lock is given up, and the waiters of this mount
 * are woken after it (lock_wait.h). At the last close of a file an owner is releasing until its
 * locks are given back: meanwhile none is taken for it (take.c). */
#include "vfs/locks/unlock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/log.h"
#include "vfs/locks/lock_owners.h"
#include "vfs/locks/lock_wait.h"
#include "vfs/locks/take.h"

int mfs_file_unlock(struct mfs_file *f, const struct mfs_lock *lock, bool flock)
{
    struct mfs_vnode *v = f->node;
    struct mfs_meta *meta = v->vfs->meta;
    struct mfs_attr attr;
    int rc;

    mfs_vnode_flush(v, NULL);
    mfs_meta_settle(meta, v->ino);
    if (flock)
        rc = mfs_meta_flock(meta, v->ino, f->flock_owner, 0, F_UNLCK, &attr, NULL);
    else
        rc = mfs_meta_setlk(meta, v->ino, lock, &attr, NULL);
    if (flock && rc == 0)
        mfs_file_note_flock(f, false);
    mfs_lock_wait_kick(v->vfs->waits, v->ino);
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

    if (mfs_file_may_have_flock(f))
        mfs_meta_flock(f->node->vfs->meta, f->node->ino, f->flock_owner, 0, F_UNLCK, &attr, NULL);
    while (unlock_one_of(f)) { /* no other thread uses a handle at its last close */
    }
}
