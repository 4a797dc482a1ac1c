/* How often files have been read that are to go then (decisions/0045). What counts is reading of
 * the content as it is: each count is of one version, and begins anew with the next. #reads has the
 * inode's number → version and count (MFS_READS_LEN bytes), from the first reading until the inode
 * is freed; its record, which clients know under leases, stays as it is. */
#include "partition/commands.h"

#include <string.h>

#include "base/bytes.h"
#include "partition/inode.h"

/* Of a field's value, and of an item of the command, big-endian. */
enum { COUNT_AT = 8 };
enum { ITEM_VERSION = 8, ITEM_COUNT = 16 };

/* How often this version has been read, by what the field holds. */
static uint32_t count_of(const struct RedisModuleString *held, uint64_t version)
{
    struct mfs_span value = {NULL, 0};

    if (held)
        value = mfs_string_span(held);
    return value.n == MFS_READS_LEN && mfs_get_be64(value.p) == version
               ? mfs_get_be32(value.p + COUNT_AT)
               : 0;
}

/* Counts `by` more; how many there are then. */
static uint32_t count(struct RedisModuleCtx *ctx, struct RedisModuleKey *key, struct mfs_span ino,
                      uint64_t version, uint32_t by)
{
    struct RedisModuleString *field = mfs_redis.CreateString(ctx, ino.p, ino.n);
    struct RedisModuleString *held = mfs_key_field(key, field);
    uint32_t n = count_of(held, version);
    char value[MFS_READS_LEN];

    if (held)
        mfs_redis.FreeString(ctx, held);
    n = by < UINT32_MAX - n ? n + by : UINT32_MAX;
    if (by) {
        mfs_put_be64(value, version);
        mfs_put_be32(value + COUNT_AT, n);
        mfs_key_set_field(ctx, key, field, value, sizeof value);
    }
    mfs_redis.FreeString(ctx, field);
    return n;
}

/* Is it a file of which readings are counted, and has names that may go? */
static bool is_counted(const struct mfs_inode *i)
{
    return mfs_inode_is_sound(i) && mfs_inode_type(i) == MFS_TYPE_FILE &&
           mfs_rec_reads(i->rec) > 0 && !(mfs_rec_u32(i->rec, MFS_REC_RDEV) & MFS_HINT_PIN) &&
           mfs_rec_u32(i->rec, MFS_REC_NLINK) > 0;
}

/* What the command has done. */
struct outcome {
    bool counted;
    long elements; /* of the answer */
};

static void take_item(const struct mfs_request *r, struct RedisModuleKey *key, const char *item,
                      struct outcome *out)
{
    struct mfs_span ino = {item, 8};
    struct mfs_inode i = mfs_inode_open(r->ctx, ino, MFS_REDIS_READ);
    uint32_t by = mfs_get_be32(item + ITEM_COUNT);
    uint64_t version;

    if (is_counted(&i)) {
        version = (uint64_t)mfs_rec_i64(i.rec, MFS_REC_VERSION);
        if (mfs_get_be64(item + ITEM_VERSION) != version)
            by = 0;
        out->counted = out->counted || by > 0;
        if (count(r->ctx, key, ino, version, by) >= mfs_rec_reads(i.rec)) {
            mfs_redis.ReplyWithStringBuffer(r->ctx, ino.p, ino.n);
            mfs_redis.ReplyWithStringBuffer(r->ctx, i.rec, MFS_RECORD_FIXED);
            out->elements += 2;
        }
    }
    mfs_inode_close(&i);
}

/* mfs_reads list: files that have been read. An item of the list (MFS_READS_ITEM bytes): inode (8),
 * version of the content (8), how often (4; 0: how often before?). Those of them whose names are to
 * go now, each followed by its record. */
int mfs_command_reads(const struct mfs_request *r)
{
    struct mfs_span list = mfs_request_arg(r, 1);
    struct RedisModuleKey *key = mfs_key_named(r->ctx, "#reads", MFS_REDIS_WRITE);
    struct outcome out = {0};

    mfs_redis.ReplyWithArray(r->ctx, MFS_REDIS_POSTPONED);
    for (size_t at = 0; at + MFS_READS_ITEM <= list.n; at += MFS_READS_ITEM)
        take_item(r, key, list.p + at, &out);
    mfs_redis.ReplySetArrayLength(r->ctx, out.elements);
    mfs_key_close(key);
    if (out.counted)
        mfs_redis.ReplicateVerbatim(r->ctx);
    return MFS_REDIS_OK;
}
