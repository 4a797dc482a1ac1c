/* What housekeeping has to look at, for one client at a time. */
#include "partition/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "partition/inode.h"
#include "partition/upkeep/sessions.h"

#define LOOK "64" /* things of each kind in one round */

/* Seconds between two looks at a directory: an eighth of what its files live, but … */
#define EXPIRE_OFTEN  4
#define EXPIRE_SELDOM 600
#define EXPIRE_READ   30 /* and where they are read so often: most names go without a look */

/* Takes the key, which ends after so many ms, unless a session has it. */
static bool take(struct RedisModuleCtx *ctx, const char *name, struct mfs_span by, int64_t ms)
{
    struct RedisModuleKey *key = mfs_key_named(ctx, name, MFS_REDIS_WRITE);
    bool free = !mfs_redis.KeyType(key);

    if (free) {
        mfs_key_set(ctx, key, by.p, by.n);
        mfs_key_expire(key, ms);
    }
    mfs_key_close(key);
    return free;
}

/* An array that is being answered. */
struct array {
    struct RedisModuleString *sid; /* see reply_orphans */
    long n;
};

static void reply_string(struct RedisModuleCtx *ctx, struct mfs_span one, void *arg)
{
    struct array *a = arg;

    mfs_redis.ReplyWithStringBuffer(ctx, one.p, one.n);
    a->n++;
}

/* An array of what `each` answers of the strings of a call's answer. */
static void reply_array(struct RedisModuleCtx *ctx, struct RedisModuleCallReply *answer,
                        size_t most, mfs_string_fn *each, struct RedisModuleString *sid)
{
    struct array a = {.sid = sid};

    mfs_redis.ReplyWithArray(ctx, MFS_REDIS_POSTPONED);
    mfs_strings_each(ctx, answer, most, each, &a);
    mfs_redis.ReplySetArrayLength(ctx, a.n);
}

static void reply_some(struct RedisModuleCtx *ctx, const char *hash)
{
    reply_array(ctx, mfs_redis.Call(ctx, "HRANDFIELD", "ccc", hash, LOOK, "WITHVALUES"), SIZE_MAX,
                reply_string, NULL);
}

/* The inode and its openers. */
static void reply_openers(struct RedisModuleCtx *ctx, struct mfs_span ino, void *arg)
{
    char key[1 + MFS_KEY_ID_MAX] = {'O'};
    struct array *a = arg;

    memcpy(key + 1, ino.p, ino.n);
    reply_string(ctx, ino, a);
    reply_array(ctx, mfs_redis.Call(ctx, "HKEYS", "b", key, 1 + ino.n), SIZE_MAX, reply_string,
                NULL);
    a->n++;
}

static void reply_if_open(struct RedisModuleCtx *ctx, struct mfs_span ino, void *arg)
{
    struct RedisModuleKey *openers = mfs_key_open(ctx, 'O', ino, MFS_REDIS_READ);
    struct array *a = arg;
    struct RedisModuleString *count = openers ? mfs_key_field(openers, a->sid) : NULL;

    if (count) {
        reply_string(ctx, ino, a);
        mfs_redis.FreeString(ctx, count);
    }
    mfs_key_close(openers);
}

/* Some of #orphans: those that the session has open; NULL: any, with all their openers. */
static void reply_orphans(struct RedisModuleCtx *ctx, struct RedisModuleString *sid)
{
    reply_array(ctx, mfs_redis.Call(ctx, "SRANDMEMBER", "cc", "#orphans", LOOK), MFS_KEY_ID_MAX,
                sid ? reply_if_open : reply_openers, sid);
}

static void reply_moving(struct RedisModuleCtx *ctx)
{
    struct RedisModuleKey *key = mfs_key_named(ctx, "#moving", MFS_REDIS_READ);
    struct mfs_span held = mfs_key_text(key);

    mfs_redis.ReplyWithStringBuffer(ctx, held.p ? held.p : "", held.n);
    mfs_key_close(key);
}

static void count_dead(struct RedisModuleCtx *ctx, struct mfs_span sid, void *arg)
{
    long long *n = arg;

    *n += mfs_session_is_dead(ctx, sid);
}

/* mfs_chores sid ms: the orphans that this session has open, which no other can close; and unless a
 * session was here less than ms ago: now in seconds, ino, end of data, … of #reap, ino,
 * { session, … }, … of #orphans, txn, since and source, … of #intents, the lock on moves or '', how
 * many sessions here have died, ino, last look, … of #ttl. */
int mfs_command_chores(const struct mfs_request *r)
{
    int64_t ms = mfs_request_int(r, 2);
    long long dead = 0;
    bool all;

    if (ms <= 0)
        return mfs_request_fail(r, EINVAL, "not a time");
    all = take(r->ctx, "#chores", (struct mfs_span){"1", 1}, ms);
    mfs_redis.ReplyWithArray(r->ctx, all ? 8 : 1);
    reply_orphans(r->ctx, r->argv[1]);
    if (!all)
        return 0;
    mfs_redis.ReplicateVerbatim(r->ctx);
    mfs_redis.ReplyWithLongLong(r->ctx, (long long)time(NULL));
    reply_some(r->ctx, "#reap");
    reply_orphans(r->ctx, NULL);
    reply_some(r->ctx, "#intents");
    reply_moving(r->ctx);
    mfs_sessions_each(r->ctx, count_dead, &dead);
    mfs_redis.ReplyWithLongLong(r->ctx, dead);
    reply_some(r->ctx, "#ttl");
    return MFS_REDIS_OK;
}

/* When names of a directory's files go. */
struct ends {
    int64_t ttl;    /* seconds after their last change; 0: never */
    uint32_t reads; /* or after so many; 0: never */
};

static int64_t seconds_between_looks(const struct ends *e)
{
    int64_t each = e->ttl ? e->ttl / 8 : EXPIRE_SELDOM;

    if (each < EXPIRE_OFTEN)
        each = EXPIRE_OFTEN;
    if (e->reads && each > EXPIRE_READ)
        each = EXPIRE_READ;
    return each < EXPIRE_SELDOM ? each : EXPIRE_SELDOM;
}

/* Looks for what has been read are more frequent: the first one in each such time is for what is
 * old, too. */
static bool is_for_old(const struct ends *e, int64_t last, int64_t now)
{
    int64_t each = seconds_between_looks(&(struct ends){.ttl = e->ttl});

    return last / each != now / each;
}

/* Is the last look at a directory of #ttl so long ago? Then there is one now, and *e what for. */
static bool begin_look(const struct mfs_request *r, struct ends *e, int64_t now)
{
    struct RedisModuleKey *key = mfs_key_named(r->ctx, "#ttl", MFS_REDIS_WRITE);
    struct RedisModuleString *held = mfs_key_field(key, r->argv[1]);
    int64_t last = held ? strtoll(mfs_string_span(held).p, NULL, 10) : 0;
    bool due = last > now || last <= now - seconds_between_looks(e);
    char text[24];
    int n = snprintf(text, sizeof text, "%lld", (long long)now);

    if (held)
        mfs_redis.FreeString(r->ctx, held);
    if (due)
        mfs_key_set_field(r->ctx, key, r->argv[1], text, (size_t)n);
    if (e->reads && !is_for_old(e, last, now))
        e->ttl = 0;
    mfs_key_close(key);
    return due;
}

static int expire(const struct mfs_request *r, const char *rec)
{
    struct ends e = {0};

    if (rec) {
        e.ttl = mfs_rec_i64(rec, MFS_REC_STORED);
        e.ttl = e.ttl > 0 ? e.ttl : 0;
        e.reads = mfs_rec_reads(rec);
    }
    if ((!e.ttl && !e.reads) || r->argc > 3)
        mfs_inode_list_ttl(r->ctx, mfs_request_arg(r, 1), rec);
    else if (!begin_look(r, &e, mfs_request_int(r, 2)))
        return mfs_redis.ReplyWithLongLong(r->ctx, 0);
    mfs_redis.ReplicateVerbatim(r->ctx);
    if (!e.reads || r->argc > 3)
        return mfs_redis.ReplyWithLongLong(r->ctx, r->argc > 3 ? 0 : e.ttl);
    mfs_redis.ReplyWithArray(r->ctx, 2);
    mfs_redis.ReplyWithLongLong(r->ctx, e.ttl);
    return mfs_redis.ReplyWithLongLong(r->ctx, e.reads);
}

/* mfs_expire ino now [cut_off]: how many seconds files of the directory live (0: for ever), and if
 * their names also go when they have been read, an array of that (0: not to be looked for now) and
 * how often; if this session is to look at it now, in seconds. 0: another one has, or there is
 * nothing to look at. With `cut_off` it did, but not to the end: the next look may be at once. */
int mfs_command_expire(const struct mfs_request *r)
{
    struct mfs_inode i;
    int rc;

    if (mfs_request_int(r, 2) <= 0)
        return mfs_request_fail(r, EINVAL, "not a time");
    i = mfs_inode_open(r->ctx, mfs_request_arg(r, 1), MFS_REDIS_READ);
    rc = expire(r, i.rec && mfs_inode_type(&i) == MFS_TYPE_DIR ? i.rec : NULL);
    mfs_inode_close(&i);
    return rc;
}

/* mfs_tidy sid ms: nil when another session searches for what dead clients have left; else this
 * session is to, and has ms for it. Memory may be full of just that. */
int mfs_command_tidy(const struct mfs_request *r)
{
    int64_t ms = mfs_request_int(r, 2);

    if (ms <= 0)
        return mfs_request_fail(r, EINVAL, "not a time");
    if (!take(r->ctx, "#tidy", mfs_request_arg(r, 1), ms))
        return mfs_redis.ReplyWithNull(r->ctx);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_redis.ReplyWithStringBuffer(r->ctx, "OK", 2);
}
