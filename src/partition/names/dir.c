/* Directories at their home: what their inodes count, and how they go away. */
#include "partition/commands.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "partition/inode.h"
#include "partition/files/leases.h"
#include "partition/locks/lock_keys.h"
#include "partition/names/dir.h"
#include "partition/names/shard.h"

#define PARTITIONS_MAX 65536

/* Names came or went at that time, in the eyes of a client that has seen so many settings of its
 * times (-1: it does not know, and clocks decide). They come late: those from before the last
 * setting are dropped, the first one after it replaces what was set. */
static void parent_changed(char *rec, const char *time, int64_t seen)
{
    bool newer = mfs_rec_is_later(time, rec + MFS_REC_CTIME);
    bool set = rec[MFS_REC_FLAGS] & MFS_RECORD_MTIME;
    uint16_t missed = (uint16_t)(mfs_rec_cuts(rec) - (uint64_t)seen);

    if ((seen >= 0 && missed > 0 && missed < 32768) || (set && seen < 0 && !newer))
        return;
    if (set || mfs_rec_is_later(time, rec + MFS_REC_MTIME)) {
        rec[MFS_REC_FLAGS] &= (char)~MFS_RECORD_MTIME;
        memcpy(rec + MFS_REC_MTIME, time, MFS_TIME_LEN);
    }
    if (newer)
        memcpy(rec + MFS_REC_CTIME, time, MFS_TIME_LEN);
}

/* mfs_ptime ino time seen: names came or went (parent_changed). */
int mfs_command_ptime(const struct mfs_request *r)
{
    struct mfs_inode i;

    if (!mfs_request_has(r, 2, MFS_TIME_LEN))
        return mfs_request_fail(r, EINVAL, "not a time");
    i = mfs_inode_open(r->ctx, mfs_request_arg(r, 1), MFS_REDIS_WRITE);
    if (i.rec) {
        parent_changed(i.rec, mfs_request_arg(r, 2).p, mfs_request_int(r, 3));
        mfs_key_changed(i.key);
        mfs_redis.ReplicateVerbatim(r->ctx);
    }
    mfs_inode_close(&i);
    return mfs_redis.ReplyWithNull(r->ctx);
}

/* A directory that is removed, whose count is 0, stays so. */
static void count_links(char *rec, int64_t delta)
{
    int64_t nlink = mfs_rec_u32(rec, MFS_REC_NLINK);

    if (nlink == 0 || delta < INT32_MIN || delta > INT32_MAX)
        return;
    nlink = nlink + delta < 2 ? 2 : nlink + delta;
    mfs_rec_put_u32(rec, MFS_REC_NLINK, nlink < UINT32_MAX ? (uint32_t)nlink : UINT32_MAX);
}

/* mfs_nlink ino delta time seen: directories came or went in it; the new record, nil without an
 * inode. */
int mfs_command_nlink(const struct mfs_request *r)
{
    struct mfs_inode i;

    if (!mfs_request_has(r, 3, MFS_TIME_LEN))
        return mfs_request_fail(r, EINVAL, "not a time");
    i = mfs_inode_open(r->ctx, mfs_request_arg(r, 1), MFS_REDIS_WRITE);
    if (!i.rec) {
        mfs_inode_close(&i);
        return mfs_redis.ReplyWithNull(r->ctx);
    }
    count_links(i.rec, mfs_request_int(r, 2));
    parent_changed(i.rec, mfs_request_arg(r, 3).p, mfs_request_int(r, 4));
    mfs_key_changed(i.key);
    mfs_redis.ReplicateVerbatim(r->ctx);
    mfs_redis.ReplyWithStringBuffer(r->ctx, i.rec, i.n);
    mfs_inode_close(&i);
    return MFS_REDIS_OK;
}

static void set_bit(struct mfs_inode *i, size_t part)
{
    size_t at = MFS_RECORD_DIR + part / 8;

    if (i->n <= at) {
        mfs_redis.StringTruncate(i->key, at + 1);
        i->rec = mfs_redis.StringDMA(i->key, &i->n, MFS_REDIS_WRITE);
    }
    i->rec[at] |= (char)(1U << part % 8);
    mfs_key_changed(i->key);
}

static bool has_bit(const struct mfs_inode *i, size_t part)
{
    size_t at = MFS_RECORD_DIR + part / 8;

    return i->n > at && ((unsigned char)i->rec[at] >> part % 8 & 1);
}

static int add_bit(const struct mfs_request *r, struct mfs_inode *i, size_t part)
{
    struct RedisModuleString *seal;
    struct mfs_answer a = {0};

    if (!i->rec || mfs_rec_u32(i->rec, MFS_REC_NLINK) == 0)
        return mfs_request_fail(r, ENOENT, "no directory");
    if (mfs_inode_type(i) != MFS_TYPE_DIR)
        return mfs_request_fail(r, ENOTDIR, "no directory");
    seal = mfs_shard_seal(r->ctx, mfs_request_arg(r, 1));
    if (seal) {
        mfs_answer_byte(&a, MFS_ANSWER_SEALED);
        mfs_answer_span(&a, mfs_string_span(seal));
        mfs_redis.FreeString(r->ctx, seal);
        return mfs_answer_send(&a, r->ctx);
    }
    if (!has_bit(i, part)) {
        set_bit(i, part);
        mfs_redis.ReplicateVerbatim(r->ctx);
    }
    mfs_answer_byte(&a, MFS_ANSWER_DONE);
    mfs_answer_add(&a, i->rec, i->n);
    return mfs_answer_send(&a, r->ctx);
}

/* mfs_dirbit ino partition: the partition may hold entries of it from now on. '\0' record; '\4'. */
int mfs_command_dirbit(const struct mfs_request *r)
{
    int64_t part = mfs_request_int(r, 2);
    struct mfs_inode i;
    int rc;

    if (part < 0 || part >= PARTITIONS_MAX)
        return mfs_request_fail(r, EINVAL, "no such partition");
    i = mfs_inode_open(r->ctx, mfs_request_arg(r, 1), MFS_REDIS_WRITE);
    rc = add_bit(r, &i, (size_t)part);
    mfs_inode_close(&i);
    return rc;
}

bool mfs_dir_is_spread(const struct mfs_inode *i, struct mfs_span here)
{
    size_t own = mfs_get_be16(here.p);

    for (size_t at = MFS_RECORD_DIR; at < i->n; at++) {
        unsigned char bits = (unsigned char)i->rec[at];

        if (at - MFS_RECORD_DIR == own / 8)
            bits &= (unsigned char)~(1U << own % 8);
        if (bits)
            return true;
    }
    return false;
}

/* It stays for the clients that have it open. */
static void orphan(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_inode *i,
                   struct mfs_span time)
{
    mfs_rec_put_u32(i->rec, MFS_REC_NLINK, 0);
    memcpy(i->rec + MFS_REC_CTIME, time.p, MFS_TIME_LEN);
    mfs_key_changed(i->key);
    mfs_inode_orphan(ctx, ino, true);
}

static void free_directory(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_inode *i)
{
    mfs_key_delete(i->key);
    mfs_key_drop(ctx, 'A', ino);
    mfs_key_drop(ctx, 'L', ino);
    mfs_locks_forget(ino);
    mfs_inode_count_freed(ctx);
}

void mfs_dir_kill(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_span time)
{
    struct mfs_inode i = mfs_inode_open(ctx, ino, MFS_REDIS_WRITE);

    if (i.rec) {
        if (i.n > MFS_RECORD_DIR)
            mfs_shard_set_tombstone(ctx, ino);
        else
            mfs_key_drop(ctx, 'D', ino);
        if (mfs_key_exists(ctx, 'O', ino))
            orphan(ctx, ino, &i, time);
        else
            free_directory(ctx, ino, &i);
    }
    mfs_inode_close(&i);
}

/* mfs_kill ino time: the directory has no name any more. Answers the sessions that have a lease of
 * its inode. */
int mfs_command_kill(const struct mfs_request *r)
{
    const struct mfs_span none = {"", 0};
    struct mfs_answer holders = {0};

    if (!mfs_request_has(r, 2, MFS_TIME_LEN))
        return mfs_request_fail(r, EINVAL, "not a time");
    mfs_dir_kill(r->ctx, mfs_request_arg(r, 1), mfs_request_arg(r, 2));
    mfs_redis.ReplicateVerbatim(r->ctx);
    mfs_lease_others(r->ctx, mfs_request_arg(r, 1), none, false, &holders);
    return mfs_answer_send(&holders, r->ctx);
}

/* mfs_tomb ino: the directory is removed, its shard here stays closed for a while. */
int mfs_command_tomb(const struct mfs_request *r)
{
    mfs_shard_set_tombstone(r->ctx, mfs_request_arg(r, 1));
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_redis.ReplyWithNull(r->ctx);
}
