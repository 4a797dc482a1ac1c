/* Locks. Each open file is an owner. A lock that has to be waited for is taken by the vfs' waiter,
 * whose answer comes by another thread; when it does not come in time the waiter is cancelled, and
 * answers that. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/threads/thread.h"
#include "lib/lib.h"

/* A call that waits for an answer. */
struct wait {
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool answered;
    int rc;
};

static void answer(void *arg, int rc)
{
    struct wait *w = arg;

    pthread_mutex_lock(&w->lock);
    w->answered = true;
    w->rc = rc;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* Waits for the answer; `waiter` is cancelled after wait_ms (< 0: never). */
static int await(struct wait *w, struct mfs_lock_waiter *waiter, int wait_ms)
{
    int64_t end = mfs_clock_mono() + wait_ms * MFS_MSEC;
    bool cancelled = false;

    pthread_mutex_lock(&w->lock);
    while (!w->answered) {
        int64_t left = end - mfs_clock_mono();

        if (waiter == NULL || wait_ms < 0 || cancelled) {
            mfs_cond_wait(&w->changed, &w->lock, MFS_SEC);
        } else if (left > 0) {
            mfs_cond_wait(&w->changed, &w->lock, left);
        } else {
            mfs_lock_waiter_cancel(waiter); /* it is there until it has answered */
            cancelled = true;
        }
    }
    pthread_mutex_unlock(&w->lock);
    return cancelled && w->rc == -EINTR ? -EAGAIN : w->rc;
}

static int wait_for(struct wait *w, struct mfs_file *file, const struct mfs_lock *lock, bool flock,
                    int wait_ms)
{
    int64_t ns = wait_ms == 0 ? MFS_VFS_LOCK_CLOSING : -1;
    struct mfs_lock_waiter *waiter = mfs_lock_waiter_create(file, lock, flock, ns, answer, w);

    if (waiter == NULL)
        return -ENOMEM;
    if (mfs_lock_waiter_start(waiter) < 0) {
        mfs_lock_waiter_destroy(waiter);
        return -EINTR;
    }
    return await(w, wait_ms > 0 ? waiter : NULL, wait_ms);
}

static int take(struct memefs_file *f, const struct mfs_lock *lock, bool flock, int wait_ms)
{
    struct wait w = {.answered = false};
    int rc;

    pthread_mutex_init(&w.lock, NULL);
    mfs_cond_init(&w.changed);
    rc = mfs_vfs_setlk(f->open, lock, flock, answer, &w);
    if (rc == -EBUSY || (rc == -EAGAIN && wait_ms != 0))
        rc = wait_for(&w, f->open, lock, flock, wait_ms);
    else if (rc == -EINPROGRESS)
        rc = await(&w, NULL, -1);
    pthread_cond_destroy(&w.changed);
    pthread_mutex_destroy(&w.lock);
    return rc;
}

int memefs_flock(struct memefs_file *file, int operation, int wait_ms)
{
    int rc = mfs_lib_enter_file(file);
    struct mfs_lock lock = {.end = INT64_MAX, .pid = (uint32_t)getpid()};

    if (rc == 0 && file->open == NULL)
        rc = -EBADF;
    if (rc < 0)
        return (int)mfs_lib_end(rc, "flock", NULL);
    lock.owner = file->owner;
    if (operation & LOCK_NB)
        wait_ms = 0;
    switch (operation & ~LOCK_NB) {
    case LOCK_SH:
        lock.type = F_RDLCK;
        break;
    case LOCK_EX:
        lock.type = F_WRLCK;
        break;
    case LOCK_UN:
        lock.type = F_UNLCK;
        break;
    default:
        return (int)mfs_lib_end(-EINVAL, "flock", NULL);
    }
    return (int)mfs_lib_end(take(file, &lock, true, wait_ms), "flock", NULL);
}

static int check(struct memefs_file *file, const struct memefs_lock *l, struct mfs_lock *lock)
{
    int rc = mfs_lib_enter_file(file);

    if (rc == 0 && file->open == NULL)
        rc = -EBADF;
    if (rc < 0)
        return rc;
    if (l == NULL || (l->type != F_RDLCK && l->type != F_WRLCK && l->type != F_UNLCK) ||
        l->start < 0 || l->len < 0)
        return -EINVAL;
    if (l->len > 0 && l->start > INT64_MAX - l->len + 1)
        return -EOVERFLOW;
    *lock = (struct mfs_lock){.type = l->type,
                              .start = (uint64_t)l->start,
                              .end = l->len == 0 ? INT64_MAX
                                                 : (uint64_t)l->start + (uint64_t)l->len - 1,
                              .owner = file->owner,
                              .pid = (uint32_t)getpid()};
    return 0;
}

/* As fcntl(2): a shared lock is for readers, an exclusive one for writers. */
static int check_mode(const struct memefs_file *file, int type)
{
    int mode = file->flags & O_ACCMODE;

    return (type == F_RDLCK && mode == O_WRONLY) || (type == F_WRLCK && mode == O_RDONLY) ? -EBADF
                                                                                          : 0;
}

int memefs_lock(struct memefs_file *file, const struct memefs_lock *lock, int wait_ms)
{
    struct mfs_lock l;
    int rc = check(file, lock, &l);

    if (rc == 0)
        rc = check_mode(file, l.type);
    if (rc == 0)
        rc = take(file, &l, false, wait_ms);
    return (int)mfs_lib_end(rc, "lock", NULL);
}

int memefs_getlk(struct memefs_file *file, struct memefs_lock *lock)
{
    struct mfs_lock l;
    int rc = check(file, lock, &l);

    if (rc == 0)
        rc = mfs_vfs_getlk(file->open, &l);
    if (rc == 0)
        *lock = (struct memefs_lock){.type = l.type,
                                     .start = (int64_t)l.start,
                                     .len = l.end >= INT64_MAX ? 0 : (int64_t)(l.end - l.start + 1),
                                     .pid = l.pid};
    return (int)mfs_lib_end(rc, "getlk", NULL);
}
