/* A stripe is told by its length. Keys that are opened here are not touched: nothing is evicted,
 * but a look is none of a client's. */
#include "partition/journal/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partition/journal/api.h"
#include "partition/journal/lost.h"
#include "partition/keys.h"

static const struct mfs_span none;

static bool is_stripe(struct mfs_span name)
{
    return name.n && name.p[0] == 'S';
}

static void add(struct mfs_answer *batch, enum mfs_journal_kind kind, struct mfs_span name,
                struct mfs_span field, struct mfs_span value, int64_t number)
{
    struct mfs_journal_record r = {kind, name, field, value, number};

    mfs_journal_batch_add(batch, &r);
}

void mfs_journal_encode_pair(struct mfs_span name, const struct RedisModuleString *field,
                             const struct RedisModuleString *value, struct mfs_answer *batch)
{
    add(batch, MFS_JOURNAL_FIELD, name, mfs_string_span(field), mfs_string_span(value), 0);
}

struct teller {
    struct mfs_span name;
    struct mfs_answer *batch;
};

static void encode_pair(struct RedisModuleKey *key, struct RedisModuleString *field,
                        struct RedisModuleString *value, void *arg)
{
    const struct teller *t = arg;

    (void)key;
    mfs_journal_encode_pair(t->name, field, value, t->batch);
}

static void encode_member(struct RedisModuleKey *key, struct RedisModuleString *member,
                          struct RedisModuleString *value, void *arg)
{
    const struct teller *t = arg;

    (void)key;
    (void)value;
    add(t->batch, MFS_JOURNAL_MEMBER, t->name, mfs_string_span(member), none, 0);
}

static void encode_all(struct RedisModuleKey *key, mfs_redis_scan *tell, struct teller *t)
{
    struct RedisModuleScanCursor *cursor = mfs_redis.ScanCursorCreate();

    while (mfs_redis.ScanKey(key, cursor, tell, t)) {
    }
    mfs_redis.ScanCursorDestroy(cursor);
}

static void encode_key(struct RedisModuleKey *key, struct teller *t, bool over)
{
    int64_t expiry = mfs_journal_api.GetAbsExpire(key);
    int type = mfs_redis.KeyType(key);

    if (type == MFS_REDIS_STRING) {
        add(t->batch, MFS_JOURNAL_STRING, t->name, none, mfs_key_text(key), expiry);
        return;
    }
    if (over)
        add(t->batch, MFS_JOURNAL_GONE, t->name, none, none, 0);
    encode_all(key, type == MFS_REDIS_HASH ? encode_pair : encode_member, t);
    if (expiry >= 0)
        add(t->batch, MFS_JOURNAL_EXPIRE, t->name, none, none, expiry);
}

static struct RedisModuleKey *open_key(struct RedisModuleCtx *ctx, struct mfs_span name)
{
    struct RedisModuleString *s = mfs_redis.CreateString(ctx, name.p, name.n);
    struct RedisModuleKey *key = mfs_redis.OpenKey(ctx, s, MFS_REDIS_READ | MFS_REDIS_NOTOUCH);

    mfs_redis.FreeString(ctx, s);
    return key;
}

void mfs_journal_encode(struct RedisModuleCtx *ctx, struct mfs_span name, bool over,
                        struct mfs_answer *batch)
{
    struct RedisModuleKey *key = open_key(ctx, name);
    struct teller t = {name, batch};
    int64_t lost;

    if (!key) {
        if (over)
            add(batch, MFS_JOURNAL_GONE, name, none, none, 0);
        return;
    }
    if (is_stripe(name)) {
        lost = mfs_lost_bytes(ctx, key);
        add(batch, MFS_JOURNAL_STRIPE, name, none, none,
            lost >= 0 ? lost : (int64_t)mfs_redis.ValueLength(key));
    } else {
        encode_key(key, &t, over);
    }
    mfs_key_close(key);
}

static void encode_set_member(struct RedisModuleCtx *ctx, struct mfs_span name,
                              struct mfs_span member, struct mfs_answer *batch)
{
    struct RedisModuleCallReply *is =
        mfs_redis.Call(ctx, "SISMEMBER", "bb", name.p, name.n, member.p, member.n);
    bool there = is && mfs_redis.CallReplyInteger(is) == 1;

    if (is)
        mfs_redis.FreeCallReply(is);
    add(batch, there ? MFS_JOURNAL_MEMBER : MFS_JOURNAL_NO_MEMBER, name, member, none, 0);
}

void mfs_journal_encode_field(struct RedisModuleCtx *ctx, struct mfs_span name,
                              struct mfs_span field, struct mfs_answer *batch)
{
    struct RedisModuleKey *key = open_key(ctx, name);
    struct RedisModuleString *f, *value;
    int type = key ? mfs_redis.KeyType(key) : MFS_REDIS_HASH;

    if (!key) {
        add(batch, MFS_JOURNAL_GONE, name, none, none, 0);
    } else if (type == MFS_REDIS_SET) {
        encode_set_member(ctx, name, field, batch);
    } else if (type == MFS_REDIS_HASH && !is_stripe(name)) {
        f = mfs_redis.CreateString(ctx, field.p, field.n);
        value = mfs_key_field(key, f);
        add(batch, value ? MFS_JOURNAL_FIELD : MFS_JOURNAL_NO_FIELD, name, field,
            value ? mfs_string_span(value) : none, 0);
        if (value)
            mfs_redis.FreeString(ctx, value);
        mfs_redis.FreeString(ctx, f);
    } else {
        mfs_key_close(key);
        mfs_journal_encode(ctx, name, true, batch);
        return;
    }
    mfs_key_close(key);
}
