/* The fields of a record as bytes, and what happens to an inode as a whole: it is opened, loses
 * names and openers, becomes an orphan (#orphans) when its last name goes while it is open or
 * leased, and is freed when neither names, openers nor pending revocations are left. Freed is the
 * record with stripe 0, attributes and locks, in one atomic step; stripes 1 … are noted in #reap
 * for the client. A function that changes a record tells the journal of its key. */
#include "partition/inode.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/ino.h"
#include "partition/locks/lock_keys.h"
#include "partition/keys.h"

#define TYPE(mode) ((mode) >> 12)
enum { SET_UID = 04000, SET_GID = 02000, GROUP_EXECUTES = 0010 }; /* of a mode */

uint32_t mfs_rec_u32(const char *rec, size_t at)
{
    uint32_t v;

    memcpy(&v, rec + at, sizeof v);
    return le32toh(v);
}

uint32_t mfs_rec_cuts(const char *rec)
{
    return mfs_get_le16(rec + MFS_REC_CUTS);
}

void mfs_rec_count_cut(char *rec)
{
    mfs_put_le16(rec + MFS_REC_CUTS, (uint16_t)(mfs_rec_cuts(rec) + 1));
}

int64_t mfs_rec_i64(const char *rec, size_t at)
{
    uint64_t v;

    memcpy(&v, rec + at, sizeof v);
    return (int64_t)le64toh(v);
}

void mfs_rec_put_u32(char *rec, size_t at, uint32_t v)
{
    v = htole32(v);
    memcpy(rec + at, &v, sizeof v);
}

void mfs_rec_put_i64(char *rec, size_t at, int64_t v)
{
    uint64_t le = htole64((uint64_t)v);

    memcpy(rec + at, &le, sizeof le);
}

void mfs_rec_add_i64(char *rec, size_t at, int64_t by)
{
    int64_t sum;

    if (!__builtin_add_overflow(mfs_rec_i64(rec, at), by, &sum))
        mfs_rec_put_i64(rec, at, sum);
}

uint32_t mfs_rec_reads(const char *rec)
{
    return mfs_hint_reads(mfs_rec_u32(rec, MFS_REC_RDEV));
}

struct mfs_inode mfs_inode_open(struct RedisModuleCtx *ctx, struct mfs_span ino, int mode)
{
    struct mfs_inode i = {.key = mfs_key_open(ctx, 'I', ino, mode)};

    if (!i.key || mfs_redis.ValueLength(i.key) < MFS_RECORD_FIXED)
        return i;
    i.rec = mfs_redis.StringDMA(i.key, &i.n, mode);
    return i;
}

void mfs_inode_close(struct mfs_inode *i)
{
    mfs_key_close(i->key);
}

unsigned mfs_inode_type(const struct mfs_inode *i)
{
    return TYPE(mfs_rec_u32(i->rec, MFS_REC_MODE));
}

bool mfs_inode_differs(const struct mfs_inode *i, size_t at, const struct mfs_request *r, int arg)
{
    return mfs_request_arg(r, arg).n && mfs_request_int(r, arg) != mfs_rec_u32(i->rec, at);
}

bool mfs_inode_is_sound(const struct mfs_inode *i)
{
    return i->rec && i->rec[MFS_REC_FORMAT] == MFS_RECORD_FORMAT &&
           mfs_rec_i64(i->rec, MFS_REC_SIZE) >= 0 && mfs_rec_i64(i->rec, MFS_REC_END) >= 0;
}

bool mfs_inode_is_here(struct mfs_span ino, struct mfs_span here)
{
    return ino.n >= 8 && here.n == 2 && mfs_ino_home(mfs_get_be64(ino.p)) == mfs_get_be16(here.p);
}

int64_t mfs_inode_stripe_size(struct mfs_span ino, int64_t usual)
{
    return mfs_stripe_size(ino.n >= 8 ? mfs_ino_stripe(mfs_get_be64(ino.p)) : 0, usual);
}

/* What is behind the count stays (mfs_reopen in upkeep/sessions.c). */
int64_t mfs_inode_opened(struct RedisModuleCtx *ctx, struct mfs_span ino,
                         struct RedisModuleString *sid, int64_t by)
{
    struct RedisModuleKey *key = mfs_key_open(ctx, 'O', ino, MFS_REDIS_WRITE);
    struct RedisModuleString *have = mfs_key_field(key, sid);
    char text[48], last[24] = "", *end;
    int64_t count = by;
    int n;

    if (have) {
        if (__builtin_add_overflow(count, strtoll(mfs_string_span(have).p, &end, 10), &count))
            count = by; /* what was there is no count */
        snprintf(last, sizeof last, "%s", end);
        mfs_redis.FreeString(ctx, have);
    }
    if (count > 0) {
        n = snprintf(text, sizeof text, "%lld%s", (long long)count, last);
        mfs_key_set_field(ctx, key, sid, text, (size_t)n);
    } else if (have) {
        mfs_key_drop_field(key, sid);
    }
    mfs_key_close(key);
    return count > 0 ? count : 0;
}

/* Stripes 1 … are noted in #reap when there can be any. */
static void note_stripes(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_span data_end)
{
    struct RedisModuleKey *key = mfs_key_named(ctx, "#reap", MFS_REDIS_WRITE);
    struct RedisModuleString *field = mfs_redis.CreateString(ctx, ino.p, ino.n);

    mfs_key_set_field(ctx, key, field, data_end.p, data_end.n);
    mfs_redis.FreeString(ctx, field);
    mfs_key_close(key);
}

void mfs_inode_count_freed(struct RedisModuleCtx *ctx)
{
    mfs_key_count(ctx, "#freed");
}

void mfs_inode_forget_reads(struct RedisModuleCtx *ctx, struct mfs_span ino)
{
    struct RedisModuleKey *key = mfs_key_named(ctx, "#reads", MFS_REDIS_WRITE);
    struct RedisModuleString *field = mfs_redis.CreateString(ctx, ino.p, ino.n);

    mfs_key_drop_field(key, field);
    mfs_redis.FreeString(ctx, field);
    mfs_key_close(key);
}

/* Removes the inode and all that is kept with it; takes over *i. */
static void free_inode(struct RedisModuleCtx *ctx, struct mfs_inode *i, struct mfs_span ino,
                       int64_t stripe_size, struct mfs_answer *a)
{
    static const char beside[] = {'A', 'O', 'L', 'P', 'V', 'F'};
    char data_end[8];
    bool more = mfs_rec_i64(i->rec, MFS_REC_END) > mfs_inode_stripe_size(ino, stripe_size);
    struct RedisModuleKey *stripe;

    if (mfs_inode_type(i) == MFS_TYPE_FILE && mfs_rec_reads(i->rec) > 0)
        mfs_inode_forget_reads(ctx, ino);
    memcpy(data_end, i->rec + MFS_REC_END, sizeof data_end);
    mfs_key_delete(i->key);
    mfs_inode_close(i);
    stripe = mfs_key_stripe0(ctx, ino, MFS_REDIS_WRITE);
    mfs_key_delete(stripe);
    mfs_key_close(stripe);
    for (size_t k = 0; k < sizeof beside; k++)
        mfs_key_drop(ctx, beside[k], ino);
    mfs_locks_forget(ino);
    mfs_inode_count_freed(ctx);
    mfs_answer_byte(a, more ? MFS_UNREF_STRIPES : MFS_UNREF_FREED);
    if (more) {
        mfs_answer_add(a, data_end, sizeof data_end);
        note_stripes(ctx, ino, (struct mfs_span){data_end, sizeof data_end});
    }
}

bool mfs_inode_orphan(struct RedisModuleCtx *ctx, struct mfs_span ino, bool orphan)
{
    struct RedisModuleCallReply *reply =
        mfs_redis.Call(ctx, orphan ? "SADD" : "SREM", "cb", "#orphans", ino.p, ino.n);
    bool changed = reply && mfs_redis.CallReplyInteger(reply) > 0;

    if (reply)
        mfs_redis.FreeCallReply(reply);
    return changed;
}

void mfs_inode_list_ttl(struct RedisModuleCtx *ctx, struct mfs_span ino, const char *rec)
{
    struct RedisModuleKey *key = mfs_key_named(ctx, "#ttl", MFS_REDIS_WRITE);
    struct RedisModuleString *field = mfs_redis.CreateString(ctx, ino.p, ino.n);

    if (rec && (mfs_rec_i64(rec, MFS_REC_STORED) > 0 || mfs_rec_reads(rec) > 0))
        mfs_key_set_field(ctx, key, field, "0", 1);
    else
        mfs_key_drop_field(key, field);
    mfs_redis.FreeString(ctx, field);
    mfs_key_close(key);
}

void mfs_inode_unref(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_span time,
                     int64_t stripe_size, bool leased, struct mfs_answer *a)
{
    struct mfs_inode i = mfs_inode_open(ctx, ino, MFS_REDIS_WRITE);
    uint32_t nlink;

    if (!i.rec) {
        mfs_inode_close(&i);
        mfs_answer_byte(a, MFS_UNREF_GONE);
        return;
    }
    nlink = mfs_rec_u32(i.rec, MFS_REC_NLINK);
    if (nlink <= 1 && !leased && !mfs_key_exists(ctx, 'O', ino)) {
        free_inode(ctx, &i, ino, stripe_size, a);
        return;
    }
    if (nlink > 0)
        nlink--;
    mfs_rec_put_u32(i.rec, MFS_REC_NLINK, nlink);
    memcpy(i.rec + MFS_REC_CTIME, time.p, time.n);
    leased = leased && nlink == 0;
    if (leased)
        i.rec[MFS_REC_FLAGS] |= MFS_RECORD_REVOKE_PENDING;
    mfs_key_changed(i.key);
    mfs_answer_byte(a, leased ? MFS_UNREF_REVOKE_PENDING : MFS_UNREF_STAYS);
    if (nlink > 0 && mfs_inode_type(&i) == MFS_TYPE_FILE)
        mfs_answer_add(a, i.rec, MFS_RECORD_FIXED);
    mfs_inode_close(&i);
    if (nlink == 0)
        mfs_inode_orphan(ctx, ino, true);
}

static void drop_caps(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_inode *i)
{
    static const char name[] = "security.capability";
    struct RedisModuleKey *key = mfs_key_open(ctx, 'A', ino, MFS_REDIS_WRITE);
    struct RedisModuleString *field = mfs_redis.CreateString(ctx, name, sizeof name - 1);

    mfs_key_drop_field(key, field);
    i->rec[MFS_REC_FLAGS] &= (char)~MFS_ATTR_SECCAPS;
    if (!mfs_redis.ValueLength(key))
        i->rec[MFS_REC_FLAGS] &= (char)~MFS_ATTR_XATTR;
    mfs_redis.FreeString(ctx, field);
    mfs_key_close(key);
}

void mfs_inode_drop(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_inode *i,
                    int64_t what)
{
    uint32_t mode = mfs_rec_u32(i->rec, MFS_REC_MODE), gone = SET_UID;

    if (TYPE(mode) == MFS_TYPE_DIR)
        return;
    if ((what & MFS_DROP_CAPS) && (i->rec[MFS_REC_FLAGS] & MFS_ATTR_SECCAPS))
        drop_caps(ctx, ino, i);
    if (mode & GROUP_EXECUTES)
        gone |= SET_GID;
    if ((what & MFS_DROP_IDS) && (mode & gone))
        mfs_rec_put_u32(i->rec, MFS_REC_MODE, mode & ~gone);
}

bool mfs_rec_is_later(const char *a, const char *b)
{
    int64_t x = mfs_rec_i64(a, 0), y = mfs_rec_i64(b, 0);

    return x > y || (x == y && mfs_rec_u32(a, 8) > mfs_rec_u32(b, 8));
}

void mfs_inode_read(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_span time)
{
    static const char never[12];
    struct mfs_inode i = {0};

    if (memcmp(time.p, never, sizeof never) == 0)
        return;
    i = mfs_inode_open(ctx, ino, MFS_REDIS_WRITE);
    if (i.rec && mfs_rec_is_later(time.p, i.rec + MFS_REC_ATIME)) {
        memcpy(i.rec + MFS_REC_ATIME, time.p, sizeof never);
        mfs_key_changed(i.key);
    }
    mfs_inode_close(&i);
}

void mfs_inode_revoked(struct RedisModuleCtx *ctx, struct mfs_span ino)
{
    struct mfs_inode i = mfs_inode_open(ctx, ino, MFS_REDIS_WRITE);

    if (i.rec) {
        i.rec[MFS_REC_FLAGS] &= (char)~MFS_RECORD_REVOKE_PENDING;
        mfs_key_changed(i.key);
    }
    mfs_inode_close(&i);
}

/* A client that dies before it has revoked them leaves the flag. Another one's housekeeping revokes
 * them; without any, leases end by themselves. */
static bool is_revoke_pending(struct RedisModuleCtx *ctx, const struct mfs_inode *i,
                              struct mfs_span ino)
{
    return (i->rec[MFS_REC_FLAGS] & MFS_RECORD_REVOKE_PENDING) && mfs_key_exists(ctx, 'Y', ino);
}

void mfs_inode_free_if_idle(struct RedisModuleCtx *ctx, struct mfs_span ino, int64_t stripe_size,
                            struct mfs_answer *a)
{
    struct mfs_inode i = mfs_inode_open(ctx, ino, MFS_REDIS_WRITE);

    if (!i.rec || mfs_rec_u32(i.rec, MFS_REC_NLINK) != 0 || mfs_key_exists(ctx, 'O', ino) ||
        is_revoke_pending(ctx, &i, ino)) {
        mfs_inode_close(&i);
        mfs_answer_byte(a, MFS_UNREF_STAYS);
        return;
    }
    mfs_inode_orphan(ctx, ino, false);
    free_inode(ctx, &i, ino, stripe_size, a);
}
