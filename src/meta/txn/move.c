/* Moves of directories to another parent happen one at a time in the whole file system, or two of
 * them could put each directory into the other. The lock names the transaction that has it; a
 * client that waits too long ends that transaction at its decider first, so that a holder that was
 * only slow is refused there, and no clock has to be trusted. */
#include "meta/internal.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "meta/call.h"
#include "meta/session/session.h"
#include "meta/txn/txn.h"

#define LOCK_WAIT (60 * MFS_SEC)
#define DEPTH_MAX 100000

/* The holder is dead or stuck. */
static int end_holder(struct mfs_meta *meta, const char *txn, const char *decider)
{
    int rc = mfs_txn_end(meta, txn, mfs_get_be16(decider));

    if (rc < 0)
        return rc;
    mfs_info("meta", "took the lock on moves from a client that died or got stuck");
    mfs_move_unlock(meta, txn);
    return -EAGAIN;
}

/* One attempt: 0, -EBUSY: another client has it, -EAGAIN: another one had it. */
static int try_lock(struct mfs_meta *meta, const char *txn, const char decider[2],
                    uint64_t *generation)
{
    struct mfs_bytes holder, holders_decider;
    struct mfs_call c;
    int rc;

    mfs_call_command(&c, "mfs_move_lock");
    mfs_args_bin(&c.args, txn, MFS_TXN_LEN);
    mfs_args_bin(&c.args, decider, 2);
    rc = mfs_call_run(meta, &c, 0);
    if (rc)
        goto out;
    if (mfs_reply_int(mfs_reply_at(c.cmd.reply, 0)) == 0) {
        *generation = (uint64_t)mfs_reply_int(mfs_reply_at(c.cmd.reply, 1));
        goto out;
    }
    holder = mfs_reply_bytes(mfs_reply_at(c.cmd.reply, 1));
    holders_decider = mfs_reply_bytes(mfs_reply_at(c.cmd.reply, 2));
    if (holder.n != MFS_TXN_LEN || holders_decider.n != 2)
        rc = -EIO;
    else if (mfs_reply_int(mfs_reply_at(c.cmd.reply, 3)) > meta->limits.holder_seconds)
        rc = end_holder(meta, holder.p, holders_decider.p);
    else
        rc = -EBUSY;
out:
    mfs_call_fini(&c);
    return rc;
}

int mfs_move_lock(struct mfs_meta *meta, const char *txn, uint32_t decider, uint64_t *generation)
{
    int64_t until = mfs_clock_mono() + LOCK_WAIT;
    struct mfs_backoff pause = {0};
    char part[2];
    int rc;

    mfs_part_arg(decider, part);
    for (;;) {
        rc = try_lock(meta, txn, part, generation);
        if (rc != -EBUSY && rc != -EAGAIN)
            return rc;
        if (mfs_clock_mono() > until)
            return -EBUSY;
        if (!mfs_backoff_wait(meta, &pause))
            pause = (struct mfs_backoff){0};
    }
}

void mfs_move_expire(struct mfs_meta *meta, struct mfs_bytes lock, int64_t now)
{
    if (lock.n == MFS_SEAL_LEN + 8 &&
        (int64_t)((uint64_t)now - mfs_get_be64(lock.p + MFS_SEAL_LEN)) >
            meta->limits.holder_seconds)
        end_holder(meta, lock.p, lock.p + MFS_TXN_LEN);
}

int mfs_move_check(struct mfs_meta *meta, uint64_t dir, uint64_t ino)
{
    struct mfs_attr attr;
    int rc;

    for (unsigned depth = 0; depth < DEPTH_MAX; depth++) {
        if (dir == ino)
            return -EINVAL;
        if (dir == MFS_ROOT_INO)
            return 0;
        rc = mfs_meta_getattr(meta, dir, &attr);
        if (rc || attr.nlink == 0)
            return rc && rc != -ESTALE ? rc : -ENOENT;
        dir = attr.parent;
    }
    return -ELOOP;
}
