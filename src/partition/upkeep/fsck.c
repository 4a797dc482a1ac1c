/* Repairs of memefs fsck. Each changes only what still is as it was when it was found to be wrong:
 * 1, otherwise 0. */
#include "partition/commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "partition/inode.h"
#include "partition/journal/lost.h"
#include "partition/locks/lock_keys.h"
#include "partition/names/shard.h"

static int answer(const struct mfs_request *r, bool changed)
{
    if (changed)
        mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_redis.ReplyWithLongLong(r->ctx, changed);
}

/* mfs_fsck_record ino old new: the whole record. */
int mfs_command_fsck_record(const struct mfs_request *r)
{
    struct RedisModuleKey *key = mfs_key_open(r->ctx, 'I', mfs_request_arg(r, 1), MFS_REDIS_WRITE);
    bool is = mfs_span_is(mfs_key_text(key), mfs_request_arg(r, 2));
    struct mfs_span record = mfs_request_arg(r, 3);

    if (is)
        mfs_key_set(r->ctx, key, record.p, record.n);
    mfs_key_close(key);
    return answer(r, is);
}

/* mfs_fsck_entry parent name old new; new '': it goes. */
int mfs_command_fsck_entry(const struct mfs_request *r)
{
    struct mfs_span parent = mfs_request_arg(r, 1), entry = mfs_request_arg(r, 4);
    struct mfs_slot slot = mfs_slot_read(r->ctx, parent, r->argv[2]);
    bool is = mfs_span_is(slot.entry, mfs_request_arg(r, 3));

    mfs_slot_fini(&slot);
    if (is && entry.n)
        mfs_shard_set(r->ctx, parent, r->argv[2], entry.p, entry.n);
    else if (is)
        mfs_shard_drop(r->ctx, parent, r->argv[2]);
    return answer(r, is);
}

/* mfs_fsck_loose letter ino: what is kept beside an inode that is not there. */
int mfs_command_fsck_loose(const struct mfs_request *r)
{
    char letter = mfs_request_arg(r, 1).p[0];
    struct mfs_span ino = mfs_request_arg(r, 2);
    bool is;

    if (ino.n != 8)
        return mfs_request_fail(r, EINVAL, "not an inode");
    is = !mfs_key_exists(r->ctx, 'I', ino) && mfs_key_exists(r->ctx, letter, ino);
    if (is)
        mfs_key_drop(r->ctx, letter, ino);
    if (is && letter == 'L')
        mfs_locks_forget(ino);
    return answer(r, is);
}

/* mfs_fsck_orphan ino: it is none, as it is not there or has a name. */
int mfs_command_fsck_orphan(const struct mfs_request *r)
{
    struct mfs_span ino = mfs_request_arg(r, 1);
    struct mfs_inode i = mfs_inode_open(r->ctx, ino, MFS_REDIS_READ);
    bool orphan = i.rec && mfs_rec_u32(i.rec, MFS_REC_NLINK) == 0;

    mfs_inode_close(&i);
    return answer(r, !orphan && mfs_inode_orphan(r->ctx, ino, false));
}

/* mfs_fsck_expire key seconds: a key that would live for ever. */
int mfs_command_fsck_expire(const struct mfs_request *r)
{
    int64_t seconds = mfs_request_int(r, 2);
    struct RedisModuleKey *key;
    bool is;

    if (seconds <= 0 || seconds > INT32_MAX)
        return mfs_request_fail(r, EINVAL, "not a time to live");
    key = mfs_redis.OpenKey(r->ctx, r->argv[1], MFS_REDIS_WRITE);
    is = mfs_redis.KeyType(key) && mfs_redis.GetExpire(key) < 0;
    if (is)
        mfs_key_expire(key, 1000 * seconds);
    mfs_key_close(key);
    return answer(r, is);
}

/* mfs_fsck_lost ino stripe bytes: a stripe that is not there was lost. */
int mfs_command_fsck_lost(const struct mfs_request *r)
{
    char id[8 + 4];
    struct RedisModuleKey *key;
    bool is;

    memcpy(id, mfs_request_arg(r, 1).p, 8);
    mfs_put_be32(id + 8, (uint32_t)mfs_request_int(r, 2));
    key = mfs_key_open(r->ctx, 'S', (struct mfs_span){id, sizeof id}, MFS_REDIS_WRITE);
    is = !mfs_redis.KeyType(key);
    if (is) {
        mfs_lost_put(r->ctx, key, mfs_request_int(r, 3));
        mfs_key_changed(key);
    }
    mfs_key_close(key);
    return answer(r, is);
}

static void set_number(const struct mfs_request *r, const char *name, int arg)
{
    struct RedisModuleKey *key = mfs_key_named(r->ctx, name, MFS_REDIS_WRITE);
    struct mfs_span text = mfs_request_arg(r, arg);

    mfs_key_set(r->ctx, key, text.p, text.n);
    mfs_key_close(key);
}

/* mfs_fsck_seq least freed: no ino is given out twice; so many of the numbers up to then have no
 * inode. */
int mfs_command_fsck_seq(const struct mfs_request *r)
{
    struct RedisModuleKey *key = mfs_key_named(r->ctx, "#seq", MFS_REDIS_READ);
    struct mfs_span last = mfs_key_text(key);
    bool is = (last.p ? strtoll(last.p, NULL, 10) : 0) < mfs_request_int(r, 1);

    mfs_key_close(key);
    if (is) {
        set_number(r, "#seq", 1);
        set_number(r, "#freed", 2);
    }
    return answer(r, is);
}
