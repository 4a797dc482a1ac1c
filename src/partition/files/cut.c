/* Content that goes: of one stripe, of many, and behind the end of a file. */
#include "partition/commands.h"

#include <errno.h>
#include <string.h>

#include "partition/files/files.h"
#include "partition/inode.h"
#include "partition/places.h"
#include "partition/journal/lost.h"
#include "partition/files/leases.h"
#include "partition/files/voids.h"

/* ---- stripes --------------------------------------------------------------------------------- */

int64_t mfs_stripe_length(struct RedisModuleCtx *ctx, struct RedisModuleKey *stripe)
{
    int64_t lost = mfs_lost_bytes(ctx, stripe);

    if (lost >= 0)
        return lost;
    return mfs_redis.KeyType(stripe) == MFS_REDIS_STRING ? (int64_t)mfs_redis.ValueLength(stripe)
                                                         : 0;
}

/* Only a value made at its final length is as small as can be. */
static void shorten(struct RedisModuleCtx *ctx, struct RedisModuleKey *stripe, int64_t keep)
{
    struct mfs_span text = mfs_key_text(stripe);

    mfs_key_set(ctx, stripe, text.p, (size_t)keep);
}

struct mfs_cut mfs_stripe_cut(struct RedisModuleCtx *ctx, struct RedisModuleKey *stripe,
                              int64_t keep)
{
    bool lost = mfs_lost_bytes(ctx, stripe) >= 0;
    struct mfs_cut c = {.old = mfs_stripe_length(ctx, stripe)};

    c.now = c.old < keep ? c.old : keep;
    if (keep == 0)
        mfs_key_delete(stripe);
    else if (c.old > keep && lost)
        mfs_lost_put(ctx, stripe, keep);
    else if (c.old > keep)
        shorten(ctx, stripe, keep);
    return c;
}

static int answer_cut(const struct mfs_request *r, struct mfs_cut c)
{
    mfs_redis.ReplyWithArray(r->ctx, 2);
    mfs_redis.ReplyWithLongLong(r->ctx, c.old);
    return mfs_redis.ReplyWithLongLong(r->ctx, c.now);
}

/* mfs_strim key keep: old and new length. */
int mfs_command_strim(const struct mfs_request *r)
{
    int64_t keep = mfs_request_int(r, 2);
    struct RedisModuleKey *stripe;
    struct mfs_cut c;

    if (keep < 0)
        return mfs_request_fail(r, EINVAL, "not of a stripe");
    stripe = mfs_redis.OpenKey(r->ctx, r->argv[1], MFS_REDIS_WRITE);
    c = mfs_stripe_cut(r->ctx, stripe, keep);
    mfs_key_close(stripe);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return answer_cut(r, c);
}

static void put_zeros(struct RedisModuleKey *stripe, int64_t off, int64_t len)
{
    size_t n;
    char *value = mfs_redis.StringDMA(stripe, &n, MFS_REDIS_WRITE);

    if (value)
        memset(value + off, 0, (size_t)len);
    mfs_key_changed(stripe);
}

/* mfs_szero key off len: old and new length. */
int mfs_command_szero(const struct mfs_request *r)
{
    int64_t off = mfs_request_int(r, 2), len = mfs_request_int(r, 3);
    struct RedisModuleKey *stripe;
    struct mfs_cut c;

    if (off < 0 || len < 0)
        return mfs_request_fail(r, EINVAL, "not of a stripe");
    stripe = mfs_redis.OpenKey(r->ctx, r->argv[1], MFS_REDIS_WRITE);
    c.old = c.now = mfs_stripe_length(r->ctx, stripe);
    if (off < c.old && len >= c.old - off)
        c = mfs_stripe_cut(r->ctx, stripe, off);
    else if (off < c.old && mfs_redis.KeyType(stripe) == MFS_REDIS_STRING)
        put_zeros(stripe, off, len);
    mfs_key_close(stripe);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return answer_cut(r, c);
}

/* mfs_sdel key [key …]: bytes freed. */
int mfs_command_sdel(const struct mfs_request *r)
{
    int64_t freed = 0;

    for (int i = 1; i < r->argc; i++) {
        struct RedisModuleKey *stripe = mfs_redis.OpenKey(r->ctx, r->argv[i], MFS_REDIS_WRITE);

        freed += mfs_stripe_length(r->ctx, stripe);
        mfs_key_delete(stripe);
        mfs_key_close(stripe);
    }
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_redis.ReplyWithLongLong(r->ctx, freed);
}

/* Has the value more than a fifth of its length as spare room? */
static bool is_loose(const struct mfs_request *r, size_t n)
{
    struct mfs_span key = mfs_request_arg(r, 1);
    struct RedisModuleCallReply *reply =
        mfs_redis.Call(r->ctx, "MEMORY", "cb", "USAGE", key.p, key.n);
    bool loose = reply && mfs_redis.CallReplyInteger(reply) > (long long)(n + n / 5);

    if (reply)
        mfs_redis.FreeCallReply(reply);
    return loose;
}

/* mfs_sfit key: a value that was lengthened step by step has up to its own size as spare room; made
 * anew it has none. */
int mfs_command_sfit(const struct mfs_request *r)
{
    struct RedisModuleKey *stripe = mfs_redis.OpenKey(r->ctx, r->argv[1], MFS_REDIS_WRITE);
    struct mfs_span text = {NULL, 0};

    if (mfs_redis.KeyType(stripe) == MFS_REDIS_STRING)
        text = mfs_key_text(stripe);
    if (text.p && is_loose(r, text.n)) {
        mfs_key_set(r->ctx, stripe, text.p, text.n);
        mfs_redis.ReplicateVerbatim(r->ctx);
    }
    mfs_key_close(stripe);
    return mfs_redis.ReplyWithNull(r->ctx);
}

/* ---- files ----------------------------------------------------------------------------------- */

enum { INO = 1, TIME, SIZE, STRIPE, SID, VERSION, DROP }; /* of mfs_truncate */

bool mfs_file_untrimmed(const char *rec, const struct mfs_trim *t)
{
    int64_t end = mfs_rec_i64(rec, MFS_REC_END);

    return end > t->stripe_size && end > t->size && mfs_rec_i64(rec, MFS_REC_VERSION) != t->version;
}

struct mfs_span mfs_file_appender(struct RedisModuleKey *place)
{
    struct mfs_span holder = mfs_key_text(place);

    holder.p = holder.n >= MFS_SESSION_LEN ? holder.p : NULL;
    holder.n = holder.p ? MFS_SESSION_LEN : 0;
    return holder;
}

bool mfs_file_end_is_leased(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_span sid,
                            char holder[MFS_SESSION_LEN])
{
    struct RedisModuleKey *place;
    struct mfs_span owner, all;
    bool leased;

    if (!mfs_places_maybe(ino))
        return false;
    place = mfs_key_open(ctx, 'P', ino, MFS_REDIS_READ);
    owner = mfs_file_appender(place);
    all = mfs_key_text(place);
    leased = owner.p && all.p[all.n - 1] == MFS_PLACE_LEASED && all.n == MFS_PLACE_LEN + 1 &&
             !mfs_span_is(owner, sid);
    if (leased)
        memcpy(holder, owner.p, MFS_SESSION_LEN);
    mfs_key_close(place);
    return leased;
}

/* Another session appends: answers with it. */
static bool is_place_taken(const struct mfs_request *r)
{
    struct RedisModuleKey *place =
        mfs_key_open(r->ctx, 'P', mfs_request_arg(r, INO), MFS_REDIS_READ);
    struct mfs_span holder = mfs_file_appender(place), sid = mfs_request_arg(r, SID);
    bool taken = holder.p && !mfs_span_is(holder, sid);

    if (taken)
        mfs_redis.ReplyWithStringBuffer(r->ctx, holder.p, holder.n);
    mfs_key_close(place);
    return taken;
}

/* Where it ends now, if it was longer; 0: it stays. */
static int64_t cut_stripe0(const struct mfs_request *r, int64_t size)
{
    struct RedisModuleKey *stripe;
    struct mfs_cut c;

    if (size >= mfs_inode_stripe_size(mfs_request_arg(r, INO), mfs_request_int(r, STRIPE)))
        return 0;
    stripe = mfs_key_stripe0(r->ctx, mfs_request_arg(r, INO), MFS_REDIS_WRITE);
    c = mfs_stripe_cut(r->ctx, stripe, size);
    mfs_key_close(stripe);
    return c.now < c.old ? c.now : 0;
}

/* Of what is left of stripe 0, up to `kept`, nothing may have been committed: zeros before bytes
 * that were stored far behind the end. */
static void cut_record(const struct mfs_request *r, struct mfs_inode *i, int64_t size, int64_t kept)
{
    bool shorter = size <= mfs_rec_i64(i->rec, MFS_REC_SIZE);
    struct mfs_span time = mfs_request_arg(r, TIME);

    mfs_rec_count_cut(i->rec);
    mfs_rec_put_i64(i->rec, MFS_REC_SIZE, size);
    if (mfs_rec_i64(i->rec, MFS_REC_END) > size)
        mfs_rec_put_i64(i->rec, MFS_REC_END, size);
    mfs_rec_add_i64(i->rec, MFS_REC_VERSION, 1);
    memcpy(i->rec + MFS_REC_MTIME, time.p, time.n);
    memcpy(i->rec + MFS_REC_CTIME, time.p, time.n);
    if (shorter)
        mfs_voids_cut(r->ctx, mfs_request_arg(r, INO), i);
    if (kept > mfs_rec_i64(i->rec, MFS_REC_END))
        mfs_voids_leave(r->ctx, mfs_request_arg(r, INO), i, kept);
    mfs_key_changed(i->key);
}

/* What may be left below the end of data that there was is void. */
static int leave_void(const struct mfs_request *r, int64_t end)
{
    const struct mfs_commit c = {.ino = mfs_request_arg(r, INO),
                                 .sid = mfs_request_arg(r, SID),
                                 .end = end,
                                 .drop = mfs_request_int(r, DROP),
                                 .parts = {.r = r, .first = r->argc, .at = -1}};
    struct mfs_answer a = {0};
    const char *why;
    int rc = mfs_commit_run(r->ctx, &c, &a, &why);

    if (!rc)
        return mfs_answer_send(&a, r->ctx);
    mfs_answer_fini(&a);
    return mfs_request_fail(r, rc, why);
}

static int answer_cut_file(const struct mfs_request *r, const struct mfs_inode *i)
{
    struct mfs_answer a = {0};

    mfs_answer_add(&a, i->rec, i->n);
    mfs_lease_others(r->ctx, mfs_request_arg(r, INO), mfs_request_arg(r, SID), true, &a);
    return mfs_answer_send(&a, r->ctx);
}

/* *end: what may be left below it is yet to be void, and nothing is answered; 0: no more is to be
 * done. */
static int cut_file(const struct mfs_request *r, struct mfs_inode *i, int64_t *end)
{
    const struct mfs_trim trim = {
        mfs_request_int(r, SIZE),
        mfs_inode_stripe_size(mfs_request_arg(r, INO), mfs_request_int(r, STRIPE)),
        mfs_request_int(r, VERSION)};
    bool left, same;

    if (!i->rec)
        return mfs_request_fail(r, ESTALE, "no inode");
    if (is_place_taken(r))
        return MFS_REDIS_OK;
    if (!mfs_inode_is_sound(i))
        return mfs_request_fail(r, EIO, "a damaged inode");
    left = mfs_file_untrimmed(i->rec, &trim);
    if (left && trim.version > 0)
        return mfs_request_fail(r, ECANCELED, "written meanwhile");
    *end = left ? mfs_rec_i64(i->rec, MFS_REC_END) : 0;
    same = trim.size == mfs_rec_i64(i->rec, MFS_REC_SIZE);
    cut_record(r, i, trim.size, cut_stripe0(r, trim.size));
    mfs_redis.ReplicateVerbatim(r->ctx);
    if (left)
        return MFS_REDIS_OK;
    if (!same || !mfs_file_is_copy_up(i->rec))
        mfs_inode_drop(r->ctx, mfs_request_arg(r, INO), i, mfs_request_int(r, DROP));
    return answer_cut_file(r, i);
}

/* mfs_truncate ino time size stripe_size sid version drop: the new record and behind it the other
 * openers and holders of leases. What `drop` says of the file's privileges goes. ECANCELED:
 * untrimmed. With version 0, which none is, the end of data stays where it was then, and what may
 * be left below it is void: it goes with the file, or with the next truncate. So is what stays of
 * stripe 0 behind the end of data. Just a session (8): nothing was done, as that other one appends.
 */
int mfs_command_truncate(const struct mfs_request *r)
{
    struct mfs_inode i;
    int64_t end = 0;
    int rc;

    if (!mfs_request_has(r, TIME, MFS_TIME_LEN) || mfs_request_int(r, SIZE) < 0)
        return mfs_request_fail(r, EINVAL, "not a time and a size");
    i = mfs_inode_open(r->ctx, mfs_request_arg(r, INO), MFS_REDIS_WRITE);
    rc = cut_file(r, &i, &end);
    mfs_inode_close(&i);
    return end ? leave_void(r, end) : rc;
}
