/* What a partition is, once and for all: #super. */
#include "partition/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "partition/inode.h"

enum { DEPLOYMENT = 1, INDEX, NPARTS, STRIPE_SIZE, SEC, NSEC }; /* of mfs_format */

#define FORMAT    "3"
#define ROOT_MODE (MFS_TYPE_DIR << 12 | 01777)

static const struct {
    const char *field;
    int arg; /* 0: FORMAT */
} wanted[] = {{"format", 0},
              {"deployment", DEPLOYMENT},
              {"index", INDEX},
              {"nparts", NPARTS},
              {"stripe_size", STRIPE_SIZE}};
#define WANTED (sizeof wanted / sizeof *wanted)

static struct mfs_span want(const struct mfs_request *r, size_t i)
{
    return wanted[i].arg ? mfs_request_arg(r, wanted[i].arg) : (struct mfs_span){FORMAT, 1};
}

/* The root directory's inode; partition 0 only. */
static void make_root(const struct mfs_request *r)
{
    static const char ino[8] = {0, 0, 0, 0, 0, 0, 0, 1};
    char rec[MFS_RECORD_DIR] = {0};
    struct RedisModuleKey *key;

    rec[MFS_REC_FORMAT] = MFS_RECORD_FORMAT;
    mfs_rec_put_u32(rec, MFS_REC_MODE, ROOT_MODE);
    mfs_rec_put_u32(rec, MFS_REC_NLINK, 2);
    mfs_rec_put_i64(rec, MFS_REC_VERSION, 1);
    for (size_t at = MFS_REC_ATIME; at < MFS_RECORD_FIXED; at += MFS_TIME_LEN) {
        mfs_put_le64(rec + at, (uint64_t)mfs_request_int(r, SEC));
        mfs_put_le32(rec + at + 8, (uint32_t)mfs_request_int(r, NSEC));
    }
    memcpy(rec + MFS_REC_PARENT, ino, sizeof ino);
    key = mfs_key_open(r->ctx, 'I', (struct mfs_span){ino, sizeof ino}, MFS_REDIS_WRITE);
    mfs_key_set(r->ctx, key, rec, sizeof rec);
    mfs_key_close(key);
    key = mfs_key_named(r->ctx, "#seq", MFS_REDIS_WRITE);
    mfs_key_set(r->ctx, key, "1", 1);
    mfs_key_close(key);
}

/* What the field of the partition is; empty: it has none. */
static struct RedisModuleString *have(const struct mfs_request *r, struct RedisModuleKey *super,
                                      size_t i)
{
    struct RedisModuleString *field =
        mfs_redis.CreateString(r->ctx, wanted[i].field, strlen(wanted[i].field));
    struct RedisModuleString *value = mfs_key_field(super, field);

    mfs_redis.FreeString(r->ctx, field);
    return value ? value : mfs_redis.CreateString(r->ctx, "", 0);
}

/* Is the partition the one that is asked for? Else `why` says what is not. */
static bool is_wanted(const struct mfs_request *r, struct RedisModuleKey *super, char *why,
                      size_t room)
{
    bool all = true;

    for (size_t i = 0; i < WANTED && all; i++) {
        struct RedisModuleString *value = have(r, super, i);
        struct mfs_span is = mfs_string_span(value), be = want(r, i);

        all = mfs_span_is(is, be);
        if (!all)
            snprintf(why, room, "%s is %s, not %s", wanted[i].field, is.p, be.p);
        mfs_redis.FreeString(r->ctx, value);
    }
    return all;
}

static void make_super(const struct mfs_request *r, struct RedisModuleKey *super)
{
    for (size_t i = 0; i < WANTED; i++) {
        struct RedisModuleString *field =
            mfs_redis.CreateString(r->ctx, wanted[i].field, strlen(wanted[i].field));

        mfs_key_set_field(r->ctx, super, field, want(r, i).p, want(r, i).n);
        mfs_redis.FreeString(r->ctx, field);
    }
}

/* mfs_format deployment index nparts stripe_size sec nsec: makes an empty partition, at that time;
 * EINVAL: it is another one already. */
int mfs_command_format(const struct mfs_request *r)
{
    struct RedisModuleKey *super = mfs_key_named(r->ctx, "#super", MFS_REDIS_WRITE);
    bool there = mfs_redis.KeyType(super), fits;
    char why[128] = "";

    fits = !there || is_wanted(r, super, why, sizeof why);
    if (!there) {
        make_super(r, super);
        mfs_redis.ReplicateVerbatim(r->ctx);
    }
    mfs_key_close(super);
    if (!there && mfs_request_has(r, INDEX, 1) && mfs_request_arg(r, INDEX).p[0] == '0')
        make_root(r);
    if (!fits)
        return mfs_request_fail(r, EINVAL, why);
    return mfs_redis.ReplyWithStringBuffer(r->ctx, "OK", 2);
}
