/* Directories that change their parent. The lock on moves is in partition 0: #moving has the
 * transaction that holds it, the partition that decides that, and since when (seconds). */
#include "partition/commands.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "partition/inode.h"

#define HELD (MFS_TXN_LEN + 2 + 8)

static bool is_holder(struct mfs_span held, struct mfs_span txn)
{
    return held.n >= MFS_TXN_LEN && !memcmp(held.p, txn.p, MFS_TXN_LEN);
}

static int answer_held(const struct mfs_request *r, struct mfs_span held)
{
    int64_t since = (int64_t)mfs_get_be64(held.p + MFS_TXN_LEN + 2);

    mfs_redis.ReplyWithArray(r->ctx, 4);
    mfs_redis.ReplyWithLongLong(r->ctx, 1);
    mfs_redis.ReplyWithStringBuffer(r->ctx, held.p, MFS_TXN_LEN);
    mfs_redis.ReplyWithStringBuffer(r->ctx, held.p + MFS_TXN_LEN, 2);
    return mfs_redis.ReplyWithLongLong(r->ctx, (int64_t)time(NULL) - since);
}

static void take(const struct mfs_request *r, struct RedisModuleKey *key)
{
    char held[HELD];

    memcpy(held, mfs_request_arg(r, 1).p, MFS_TXN_LEN);
    memcpy(held + MFS_TXN_LEN, mfs_request_arg(r, 2).p, 2);
    mfs_put_be64(held + MFS_TXN_LEN + 2, (uint64_t)time(NULL));
    mfs_key_set(r->ctx, key, held, sizeof held);
}

/* mfs_move_lock txn decider: 0, generation; or, when another has it: 1, txn, decider, age. */
int mfs_command_move_lock(const struct mfs_request *r)
{
    struct RedisModuleKey *key;
    struct mfs_span held;

    if (!mfs_request_has(r, 2, 2))
        return mfs_request_fail(r, EINVAL, "not a partition");
    key = mfs_key_named(r->ctx, "#moving", MFS_REDIS_WRITE);
    held = mfs_key_text(key);
    if (held.n >= HELD) {
        answer_held(r, held);
        mfs_key_close(key);
        return MFS_REDIS_OK;
    }
    take(r, key);
    mfs_key_close(key);
    mfs_redis.ReplicateVerbatim(r->ctx);
    mfs_redis.ReplyWithArray(r->ctx, 2);
    mfs_redis.ReplyWithLongLong(r->ctx, 0);
    return mfs_redis.ReplyWithLongLong(r->ctx, (long long)mfs_key_count(r->ctx, "#moves"));
}

/* mfs_move_unlock txn */
int mfs_command_move_unlock(const struct mfs_request *r)
{
    struct RedisModuleKey *key = mfs_key_named(r->ctx, "#moving", MFS_REDIS_WRITE);

    if (is_holder(mfs_key_text(key), mfs_request_arg(r, 1))) {
        mfs_key_delete(key);
        mfs_redis.ReplicateVerbatim(r->ctx);
    }
    mfs_key_close(key);
    return mfs_redis.ReplyWithNull(r->ctx);
}

/* mfs_reparent ino parent generation time: the directory's parent since its move of that
 * generation. */
int mfs_command_reparent(const struct mfs_request *r)
{
    struct mfs_span generation = mfs_request_arg(r, 3);
    struct mfs_inode i;

    if (!mfs_request_has(r, 2, 8) || generation.n != 8 || !mfs_request_has(r, 4, MFS_TIME_LEN))
        return mfs_request_fail(r, EINVAL, "not a parent, a generation and a time");
    i = mfs_inode_open(r->ctx, mfs_request_arg(r, 1), MFS_REDIS_WRITE);
    if (i.rec && i.n >= MFS_RECORD_DIR &&
        mfs_get_be64(generation.p) > mfs_get_be64(i.rec + MFS_REC_MOVE)) {
        memcpy(i.rec + MFS_REC_PARENT, mfs_request_arg(r, 2).p, 8);
        memcpy(i.rec + MFS_REC_MOVE, generation.p, 8);
        memcpy(i.rec + MFS_REC_CTIME, mfs_request_arg(r, 4).p, MFS_TIME_LEN);
        mfs_key_changed(i.key);
        mfs_redis.ReplicateVerbatim(r->ctx);
    }
    mfs_inode_close(&i);
    return mfs_redis.ReplyWithNull(r->ctx);
}
