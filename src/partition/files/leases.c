/* Y ino holds sessions of 8 bytes each, K dir one. Both last for long after they were last asked
 * for, and after the inode. */
#include "partition/files/leases.h"

#include <string.h>

#include "partition/files/files.h"
#include "partition/keys.h"
#include "partition/protocol.h"

#define HOLDERS_MAX (512 * 8)

static bool is_among(const char *sids, size_t n, const char *sid)
{
    for (size_t at = 0; at + 8 <= n; at += 8) {
        if (memcmp(sids + at, sid, 8) == 0)
            return true;
    }
    return false;
}

bool mfs_lease_add(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_span sid)
{
    struct RedisModuleKey *key;
    struct mfs_span held;
    char holder[MFS_SESSION_LEN];
    bool added = true;

    if (sid.n != MFS_SESSION_LEN || mfs_file_end_is_leased(ctx, ino, sid, holder))
        return false; /* its opens are to be known here, so that they revoke that lease */
    key = mfs_key_open(ctx, 'Y', ino, MFS_REDIS_WRITE);
    held = mfs_key_text(key);
    if (!held.p) {
        mfs_key_set(ctx, key, sid.p, sid.n);
    } else if (!is_among(held.p, held.n, sid.p)) {
        added = held.n < HOLDERS_MAX;
        if (added) {
            mfs_redis.StringTruncate(key, held.n + sid.n);
            held.p = mfs_redis.StringDMA(key, &held.n, MFS_REDIS_WRITE);
            memcpy((char *)held.p + held.n - sid.n, sid.p, sid.n);
        }
    }
    if (added) {
        mfs_key_expire(key, MFS_LEASE_MS);
    }
    mfs_key_close(key);
    return added;
}

void mfs_lease_drop(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_span sid)
{
    struct RedisModuleKey *key = mfs_key_open(ctx, 'Y', ino, MFS_REDIS_WRITE);
    struct mfs_span held = mfs_key_text(key);
    size_t at = 0, n = held.n;

    while (at + MFS_SESSION_LEN <= n && memcmp(held.p + at, sid.p, MFS_SESSION_LEN) != 0)
        at += MFS_SESSION_LEN;
    if (at + MFS_SESSION_LEN <= n && n == MFS_SESSION_LEN) {
        mfs_key_delete(key);
    } else if (at + MFS_SESSION_LEN <= n) {
        char *all = mfs_redis.StringDMA(key, &n, MFS_REDIS_WRITE);

        memmove(all + at, all + at + MFS_SESSION_LEN, n - at - MFS_SESSION_LEN);
        mfs_redis.StringTruncate(key, n - MFS_SESSION_LEN);
        mfs_key_changed(key);
    }
    mfs_key_close(key);
}

struct collector {
    struct mfs_span sid;
    struct mfs_answer *a;
    size_t begin; /* where the sessions begin in the answer */
};

static void add_other(struct collector *c, const char *sid)
{
    bool known = c->a->n > c->begin && is_among(c->a->p + c->begin, c->a->n - c->begin, sid);

    if (!known && memcmp(sid, c->sid.p, 8) != 0)
        mfs_answer_add(c->a, sid, 8);
}

static void add_opener(struct RedisModuleKey *key, struct RedisModuleString *field,
                       struct RedisModuleString *value, void *arg)
{
    struct mfs_span sid = mfs_string_span(field);

    (void)key;
    (void)value;
    if (sid.n == 8)
        add_other(arg, sid.p);
}

static void add_openers(struct RedisModuleCtx *ctx, struct mfs_span ino, struct collector *c)
{
    struct RedisModuleKey *key = mfs_key_open(ctx, 'O', ino, MFS_REDIS_READ);
    struct RedisModuleScanCursor *cursor;

    if (!key)
        return;
    cursor = mfs_redis.ScanCursorCreate();
    while (mfs_redis.ScanKey(key, cursor, add_opener, c)) {
    }
    mfs_redis.ScanCursorDestroy(cursor);
    mfs_key_close(key);
}

void mfs_lease_others(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_span sid,
                      bool openers, struct mfs_answer *a)
{
    static const char nobody[8];
    struct collector c = {sid.n == 8 ? sid : (struct mfs_span){nobody, 8}, a, a->n};
    struct RedisModuleKey *key = mfs_key_open(ctx, 'Y', ino, MFS_REDIS_READ);
    struct mfs_span held = mfs_key_text(key);

    for (size_t at = 0; at + 8 <= held.n; at += 8)
        add_other(&c, held.p + at);
    mfs_key_close(key);
    if (openers)
        add_openers(ctx, ino, &c);
}

/* The right is not taken from another session: what this one adds next, by another thread, would
 * not be told to that while the first addition still is. */
void mfs_lease_keeper(struct RedisModuleCtx *ctx, struct RedisModuleKey *shard, struct mfs_span dir,
                      struct mfs_span sid, char what, struct mfs_answer *a)
{
    struct RedisModuleKey *key = mfs_key_open(ctx, 'K', dir, MFS_REDIS_WRITE);
    struct mfs_span keeper = mfs_key_text(key);
    bool own = mfs_span_is(keeper, sid);
    char now = 0;

    if (what == 'p' && own)
        now = 2;
    else if ((what == 'n' || what == 'p') && sid.n == 8 && mfs_redis.ValueLength(shard) == 1 &&
             (own || !keeper.p))
        now = 1;
    mfs_answer_byte(a, (size_t)now);
    if (keeper.p && !own)
        mfs_answer_span(a, keeper);
    if (now == 1)
        mfs_key_set(ctx, key, sid.p, sid.n);
    if (now) {
        mfs_key_expire(key, MFS_LEASE_MS);
    }
    mfs_key_close(key);
}

void mfs_lease_drop_keeper(struct RedisModuleCtx *ctx, struct mfs_span dir, struct mfs_span sid)
{
    struct RedisModuleKey *key = mfs_key_open(ctx, 'K', dir, MFS_REDIS_WRITE);

    if (mfs_span_is(mfs_key_text(key), sid))
        mfs_key_delete(key);
    mfs_key_close(key);
}
