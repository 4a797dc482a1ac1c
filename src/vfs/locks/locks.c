/* fcntl locks and flock: what this mount does around them, so that a process that gets a lock sees
 * what was written under it, and one that gives it up has made its writes known. */
#include <errno.h>

#include "vfs/locks/take.h"
#include "vfs/locks/unlock.h"

/* At most, between two looks at a holder that has just closed. */
#define GETLK_NAP (16 * MFS_MSEC)

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

int mfs_vfs_setlk(struct mfs_file *f, const struct mfs_lock *lock, bool flock,
                  mfs_vfs_lock_fn *done, void *arg)
{
    int rc;

    mfs_file_answer_taken(f);
    if (lock->type == F_UNLCK)
        return mfs_file_unlock(f, lock, flock);
    rc = mfs_file_try_lock(f, lock, flock, NULL, done, arg);
    /* As flock(2) says: to convert a lock is to give up the old one first. Two holders of shared
     * locks that both want to write would wait for each other. */
    if ((rc == -EAGAIN || rc == -EBUSY) && flock && mfs_file_may_have_flock(f))
        mfs_file_unlock(f, lock, true);
    return rc;
}
