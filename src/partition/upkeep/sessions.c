/* Sessions, which must live on when memory is full. #sessions has those that live here, and those
 * that have died: until all partitions have been searched for what they left (src/fsck/tidy.c). */
#include "partition/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "partition/inode.h"
#include "partition/upkeep/sessions.h"

void mfs_sessions_each(struct RedisModuleCtx *ctx, mfs_string_fn *each, void *arg)
{
    mfs_strings_each(ctx, mfs_redis.Call(ctx, "SMEMBERS", "c", "#sessions"), MFS_KEY_ID_MAX, each,
                     arg);
}

bool mfs_session_is_dead(struct RedisModuleCtx *ctx, struct mfs_span sid)
{
    return !mfs_key_exists(ctx, 'Z', sid);
}

/* Of #sessions. */
static void change(const struct mfs_request *r, const char *command)
{
    struct mfs_span sid = mfs_request_arg(r, 1);

    mfs_redis.FreeCallReply(mfs_redis.Call(r->ctx, command, "cb", "#sessions", sid.p, sid.n));
}

/* mfs_session sid ttl_ms text: it lives, or is to live on, for that long. */
int mfs_command_session(const struct mfs_request *r)
{
    struct mfs_span text = mfs_request_arg(r, 3);
    int64_t ms = mfs_request_int(r, 2);
    struct RedisModuleKey *key;

    if (ms <= 0)
        return mfs_request_fail(r, EINVAL, "not a time to live");
    change(r, "SADD");
    key = mfs_key_open(r->ctx, 'Z', mfs_request_arg(r, 1), MFS_REDIS_WRITE);
    mfs_key_set(r->ctx, key, text.p, text.n);
    mfs_key_expire(key, ms);
    mfs_key_close(key);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_redis.ReplyWithNull(r->ctx);
}

/* mfs_session_end sid: it has given everything back. */
int mfs_command_session_end(const struct mfs_request *r)
{
    mfs_key_drop(r->ctx, 'Z', mfs_request_arg(r, 1));
    change(r, "SREM");
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_redis.ReplyWithNull(r->ctx);
}

static void answer_dead(struct RedisModuleCtx *ctx, struct mfs_span sid, void *arg)
{
    long *n = arg;

    if (!mfs_session_is_dead(ctx, sid))
        return;
    mfs_redis.ReplyWithStringBuffer(ctx, sid.p, sid.n);
    ++*n;
}

/* mfs_sessions_dead: those of #sessions that have died. */
int mfs_command_sessions_dead(const struct mfs_request *r)
{
    long n = 0;

    mfs_redis.ReplyWithArray(r->ctx, MFS_REDIS_POSTPONED);
    mfs_sessions_each(r->ctx, answer_dead, &n);
    mfs_redis.ReplySetArrayLength(r->ctx, n);
    return MFS_REDIS_OK;
}

/* mfs_session_bury sid: nothing is left of it any more. */
int mfs_command_session_bury(const struct mfs_request *r)
{
    if (mfs_session_is_dead(r->ctx, mfs_request_arg(r, 1))) {
        change(r, "SREM");
        mfs_redis.ReplicateVerbatim(r->ctx);
    }
    return mfs_redis.ReplyWithNull(r->ctx);
}

static void keep(struct RedisModuleCtx *ctx, struct mfs_span sid, void *arg)
{
    struct RedisModuleKey *key = mfs_key_open(ctx, 'Z', sid, MFS_REDIS_WRITE);
    const int64_t *ms = arg;

    if (mfs_redis.KeyType(key))
        mfs_key_expire(key, *ms);
    mfs_key_close(key);
}

/* mfs_sessions_keep ms: no session here can be refreshed for a while, as the partition is about to
 * be fenced for long: those that are alive live that long. Their next refresh sets the usual time
 * again. */
int mfs_command_sessions_keep(const struct mfs_request *r)
{
    int64_t ms = mfs_request_int(r, 1);

    if (ms <= 0)
        return mfs_request_fail(r, EINVAL, "not a time to live");
    mfs_sessions_each(r->ctx, keep, &ms);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_redis.ReplyWithNull(r->ctx);
}

/* What a session has open, as O ino has it: count, and the number of its last registration. */
static void read_opener(struct RedisModuleKey *openers, struct RedisModuleString *sid,
                        int64_t *count, int64_t *last)
{
    struct RedisModuleString *have = mfs_key_field(openers, sid);
    char *end;

    *count = *last = 0;
    if (!have)
        return;
    *count = strtoll(mfs_string_span(have).p, &end, 10);
    *last = strtoll(end, NULL, 10);
    mfs_redis.FreeString(NULL, have);
}

enum { INO = 1, SID, COUNT, NUMBER }; /* of mfs_reopen */

static bool reopen(const struct mfs_request *r, struct RedisModuleKey *openers)
{
    int64_t number = mfs_request_int(r, NUMBER), count, last;
    char text[48];
    int n;

    read_opener(openers, r->argv[SID], &count, &last);
    if (number > 0 && number <= last)
        return false;
    if (__builtin_add_overflow(count, mfs_request_int(r, COUNT), &count))
        return false;
    n = snprintf(text, sizeof text, "%lld %lld", (long long)count,
                 (long long)(number > 0 ? number : last));
    mfs_key_set_field(r->ctx, openers, r->argv[SID], text, (size_t)n);
    return true;
}

/* mfs_reopen ino sid count [number]: what a session has open that is not registered yet. With a
 * number, which grows from one to the next of the session and inode, it is done once, however often
 * it comes: the last one is kept behind the count. */
int mfs_command_reopen(const struct mfs_request *r)
{
    struct mfs_span ino = mfs_request_arg(r, INO);
    struct mfs_inode i = mfs_inode_open(r->ctx, ino, MFS_REDIS_READ);
    struct RedisModuleKey *openers;

    if (i.rec) {
        openers = mfs_key_open(r->ctx, 'O', ino, MFS_REDIS_WRITE);
        if (reopen(r, openers))
            mfs_redis.ReplicateVerbatim(r->ctx);
        mfs_key_close(openers);
    }
    mfs_inode_close(&i);
    return mfs_redis.ReplyWithNull(r->ctx);
}
