/* Locks: getlk, setlk, flock. A lock that has to be waited for is answered later, by the waiter's
 * thread; until then the request can be interrupted, which cancels the waiter. Each request is
 * answered once, by `answer`. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>

#include "fuse/ops/ops.h"

/* A request that is answered later. */
struct pending {
    fuse_req_t req;
    struct mfs_lock_waiter *waiter; /* NULL when it can't be interrupted */
    struct mfs_request timing;
};

static void answer(void *arg, int rc)
{
    struct pending *p = arg;

    /* After this no thread interrupts any more, nor is about to. */
    if (p->waiter != NULL)
        fuse_req_interrupt_func(p->req, NULL, NULL);
    mfs_op_answer_detached(p->req, &p->timing, rc);
    fuse_reply_err(p->req, -rc);
    free(p);
}

static void interrupted(fuse_req_t req, void *arg)
{
    (void)req;
    mfs_lock_waiter_cancel(arg);
}

static void wait_for(struct pending *p, struct mfs_file *file, const struct mfs_lock *lock,
                     bool flock, bool sleep)
{
    struct mfs_lock_waiter *w =
        mfs_lock_waiter_create(file, lock, flock, sleep ? -1 : MFS_VFS_LOCK_CLOSING, answer, p);

    if (w == NULL) {
        answer(p, -ENOMEM);
        return;
    }
    if (sleep) {
        p->waiter = w;
        fuse_req_interrupt_func(p->req, interrupted, w);
    }
    mfs_request_waits(&p->timing, w);
    if (mfs_lock_waiter_start(w) < 0) {
        answer(p, -EINTR); /* until then others may look at it, or cancel it */
        mfs_lock_waiter_destroy(w);
    }
}

static void set_lock(fuse_req_t req, struct fuse_file_info *fi, const struct mfs_lock *lock,
                     bool flock, bool sleep)
{
    struct pending *p = calloc(1, sizeof *p);
    int rc;

    if (p == NULL) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    p->req = req;
    mfs_request_detach(&p->timing);
    rc = mfs_vfs_setlk(mfs_op_file(fi), lock, flock, answer, p);
    if (rc != -EINPROGRESS)
        mfs_request_join(&p->timing);
    if (rc == -EBUSY || (rc == -EAGAIN && sleep))
        wait_for(p, mfs_op_file(fi), lock, flock, sleep);
    else if (rc != -EINPROGRESS)
        answer(p, rc);
}

static struct mfs_lock lock_of(const struct flock *fl, uint64_t owner)
{
    struct mfs_lock lock = {.type = fl->l_type, .owner = owner, .pid = (uint32_t)fl->l_pid};

    lock.start = (uint64_t)fl->l_start;
    lock.end = fl->l_len == 0 ? INT64_MAX : (uint64_t)(fl->l_start + fl->l_len - 1);
    return lock;
}

void mfs_op_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *fl)
{
    struct mfs_lock lock = lock_of(fl, fi->lock_owner);
    int rc;

    mfs_op_begin(req, MFS_OP_GETLK);
    (void)ino;
    rc = mfs_vfs_getlk(mfs_op_file(fi), &lock);
    if (rc < 0) {
        fuse_reply_err(req, -rc);
        return;
    }
    *fl = (struct flock){.l_type = (short)lock.type, .l_whence = SEEK_SET};
    fl->l_start = (off_t)lock.start;
    fl->l_len = lock.end >= INT64_MAX ? 0 : (off_t)(lock.end - lock.start + 1);
    fl->l_pid = (pid_t)lock.pid;
    fuse_reply_lock(req, fl);
}

void mfs_op_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *fl,
                  int sleep)
{
    struct mfs_lock lock = lock_of(fl, fi->lock_owner);

    mfs_op_begin(req, MFS_OP_SETLK);
    (void)ino;
    set_lock(req, fi, &lock, false, sleep);
}

void mfs_op_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op)
{
    struct mfs_lock lock = {.owner = fi->lock_owner,
                            .start = 0,
                            .end = INT64_MAX,
                            .pid = (uint32_t)fuse_req_ctx(req)->pid};
    int kind = op & (LOCK_SH | LOCK_EX | LOCK_UN);

    mfs_op_begin(req, MFS_OP_FLOCK);
    (void)ino;
    lock.type = kind == LOCK_SH ? F_RDLCK : kind == LOCK_EX ? F_WRLCK : F_UNLCK;
    set_lock(req, fi, &lock, true, !(op & LOCK_NB));
}
