/* Leases by inode. */
#include "partition/commands.h"

#include "partition/inode.h"
#include "partition/files/leases.h"

/* mfs_lease ino sid [entry]: whether the session is registered ('\1' or '\0') and the record; nil
 * without an inode. With `entry`, where a name of it is: registered in any case, no record. */
int mfs_command_lease(const struct mfs_request *r)
{
    struct mfs_span ino = mfs_request_arg(r, 1);
    struct mfs_inode i = {0};
    struct mfs_answer a = {0};
    bool leased;

    if (r->argc <= 3) {
        i = mfs_inode_open(r->ctx, ino, MFS_REDIS_READ);
        if (!i.rec) {
            mfs_inode_close(&i);
            return mfs_redis.ReplyWithNull(r->ctx);
        }
    }
    leased = mfs_lease_add(r->ctx, ino, mfs_request_arg(r, 2));
    if (leased)
        mfs_redis.ReplicateVerbatim(r->ctx);
    mfs_answer_byte(&a, leased);
    mfs_answer_add(&a, i.rec, i.n);
    mfs_inode_close(&i);
    return mfs_answer_send(&a, r->ctx);
}

/* mfs_unlease sid inos dirs: the session gives back its leases of the inodes, and its keeper's
 * right of the directories' shards here; 8 bytes each. */
int mfs_command_unlease(const struct mfs_request *r)
{
    struct mfs_span sid = mfs_request_arg(r, 1), inos = mfs_request_arg(r, 2),
                    dirs = mfs_request_arg(r, 3);

    for (size_t at = 0; at + 8 <= inos.n; at += 8)
        mfs_lease_drop(r->ctx, (struct mfs_span){inos.p + at, 8}, sid);
    for (size_t at = 0; at + 8 <= dirs.n; at += 8)
        mfs_lease_drop_keeper(r->ctx, (struct mfs_span){dirs.p + at, 8}, sid);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_redis.ReplyWithLongLong(r->ctx, 0);
}

/* mfs_holders ino sid [open]: the other sessions with a lease of it, 8 bytes each; with `open` also
 * those that have it open. */
int mfs_command_holders(const struct mfs_request *r)
{
    struct mfs_answer a = {0};

    mfs_lease_others(r->ctx, mfs_request_arg(r, 1), mfs_request_arg(r, 2), r->argc > 3, &a);
    return mfs_answer_send(&a, r->ctx);
}
