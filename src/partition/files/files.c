/* Open files and their content. A stripe is a string value that ends at its last byte that may not
 * be zero; stripe 0 is where the inode is. */
#include "partition/commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "partition/files/files.h"
#include "partition/inode.h"
#include "partition/files/leases.h"
#include "partition/journal/lost.h"
#include "partition/files/voids.h"

/* Only a value made at its final length is as small as can be, so that is done where it is cheap.
 */
#define REBUILD_MAX 65536

#define STRIPE_MAX (64 << 20) /* bytes, more than any stripe has */

/* The record with its content cut to nothing; `time` has 12 bytes. */
static void empty(char *rec, struct mfs_span time)
{
    mfs_rec_put_i64(rec, MFS_REC_SIZE, 0);
    mfs_rec_put_i64(rec, MFS_REC_END, 0);
    mfs_rec_add_i64(rec, MFS_REC_VERSION, 1);
    mfs_rec_count_cut(rec);
    memcpy(rec + MFS_REC_MTIME, time.p, time.n);
    memcpy(rec + MFS_REC_CTIME, time.p, time.n);
}

enum {
    OPEN_INO = 1,
    OPEN_SID,
    OPEN_HEAD,
    OPEN_TIME,
    OPEN_VERSION,
    OPEN_STRIPE,
    OPEN_DROP
}; /* of mfs_open */

static bool untrimmed(const struct mfs_request *r, const char *rec)
{
    const struct mfs_trim t = {
        0, mfs_inode_stripe_size(mfs_request_arg(r, OPEN_INO), mfs_request_int(r, OPEN_STRIPE)),
        mfs_request_int(r, OPEN_VERSION)};

    return mfs_file_untrimmed(rec, &t);
}

static int open_cut(const struct mfs_request *r, struct mfs_inode *i)
{
    struct mfs_span ino = mfs_request_arg(r, OPEN_INO);
    struct RedisModuleKey *stripe = mfs_key_stripe0(r->ctx, ino, MFS_REDIS_WRITE);
    int64_t end = mfs_rec_i64(i->rec, MFS_REC_END);
    bool left = untrimmed(r, i->rec);
    struct mfs_answer others = {0};

    mfs_key_delete(stripe);
    mfs_key_close(stripe);
    empty(i->rec, mfs_request_arg(r, OPEN_TIME));
    mfs_voids_cut(r->ctx, ino, i);
    mfs_inode_drop(r->ctx, ino, i, mfs_request_int(r, OPEN_DROP));
    if (left)
        mfs_voids_leave(r->ctx, ino, i, end);
    mfs_key_changed(i->key);
    mfs_lease_others(r->ctx, ino, mfs_request_arg(r, OPEN_SID), true, &others);
    mfs_redis.ReplyWithArray(r->ctx, 2);
    mfs_redis.ReplyWithStringBuffer(r->ctx, i->rec, i->n);
    return mfs_answer_send(&others, r->ctx);
}

/* Content that was lost is not given: a client that reads it gets an error. */
static int open_head(const struct mfs_request *r, struct mfs_inode *i)
{
    struct RedisModuleKey *stripe =
        mfs_key_stripe0(r->ctx, mfs_request_arg(r, OPEN_INO), MFS_REDIS_READ);
    struct mfs_span content;
    bool whole = mfs_voids_head(i, stripe, &content) && mfs_lost_bytes(r->ctx, stripe) < 0;

    mfs_redis.ReplyWithArray(r->ctx, whole ? 2 : 1);
    mfs_redis.ReplyWithStringBuffer(r->ctx, i->rec, i->n);
    if (whole)
        mfs_redis.ReplyWithStringBuffer(r->ctx, content.p ? content.p : "", content.n);
    mfs_key_close(stripe);
    return MFS_REDIS_OK;
}

/* Another session has a lease of the file's end: answers with it. */
static bool is_end_leased(const struct mfs_request *r, struct mfs_span ino, struct mfs_span sid)
{
    char holder[MFS_SESSION_LEN];
    bool leased = mfs_file_end_is_leased(r->ctx, ino, sid, holder);

    if (leased) {
        mfs_redis.ReplyWithArray(r->ctx, 1);
        mfs_redis.ReplyWithStringBuffer(r->ctx, holder, sizeof holder);
    }
    return leased;
}

/* Another session appends: answers with it. */
static bool is_place_taken(const struct mfs_request *r, struct mfs_span ino, struct mfs_span sid)
{
    struct RedisModuleKey *key = mfs_key_open(r->ctx, 'P', ino, MFS_REDIS_READ);
    struct mfs_span holder = mfs_file_appender(key);
    bool taken = holder.p && !mfs_span_is(holder, sid);

    if (taken) {
        mfs_redis.ReplyWithArray(r->ctx, 1);
        mfs_redis.ReplyWithStringBuffer(r->ctx, holder.p, holder.n);
    }
    mfs_key_close(key);
    return taken;
}

static int open_inode(const struct mfs_request *r, struct mfs_inode *i)
{
    int64_t head = mfs_request_int(r, OPEN_HEAD);
    bool cut = r->argc > OPEN_TIME;

    if (!i->rec)
        return mfs_request_fail(r, ESTALE, "no inode");
    if (!mfs_inode_is_sound(i))
        return mfs_request_fail(r, EIO, "a damaged inode");
    if (cut && is_place_taken(r, mfs_request_arg(r, OPEN_INO), mfs_request_arg(r, OPEN_SID)))
        return MFS_REDIS_OK;
    if (!cut && is_end_leased(r, mfs_request_arg(r, OPEN_INO), mfs_request_arg(r, OPEN_SID)))
        return MFS_REDIS_OK;
    if (cut && mfs_request_int(r, OPEN_VERSION) > 0 && untrimmed(r, i->rec))
        return mfs_request_fail(r, ECANCELED, "written meanwhile");
    mfs_inode_opened(r->ctx, mfs_request_arg(r, OPEN_INO), r->argv[OPEN_SID], 1);
    mfs_redis.ReplicateVerbatim(r->ctx);
    if (cut)
        return open_cut(r, i);
    if (head > 0 && mfs_rec_i64(i->rec, MFS_REC_SIZE) <= head)
        return open_head(r, i);
    mfs_redis.ReplyWithArray(r->ctx, 1);
    return mfs_redis.ReplyWithStringBuffer(r->ctx, i->rec, i->n);
}

/* mfs_open ino sid head [time version stripe_size drop]: one more opener; with time the content is
 * cut to nothing, and what `drop` says goes. The record, and with it the stored content when the
 * size is at most `head`, or the sessions that have to be told of the cut. ECANCELED: untrimmed,
 * and the version is not 0, which none is and which has the end of data stay. Just a session,
 * another one that has a lease of the file's end, or, if it is to be cut, appends beyond stripe 0:
 * there is neither a cut nor an opener. */
int mfs_command_open(const struct mfs_request *r)
{
    bool cut = r->argc > OPEN_TIME;
    struct mfs_inode i;
    int rc;

    if (cut && mfs_request_arg(r, OPEN_TIME).n != 12)
        return mfs_request_fail(r, EINVAL, "not a time");
    i = mfs_inode_open(r->ctx, mfs_request_arg(r, OPEN_INO),
                       cut ? MFS_REDIS_WRITE : MFS_REDIS_READ);
    rc = open_inode(r, &i);
    mfs_inode_close(&i);
    return rc;
}

/* One inode of mfs_close; adds to the answer when stripes may be left. */
static long close_one(const struct mfs_request *r, struct mfs_span ino, int64_t by)
{
    struct mfs_answer status = {0};
    long items = 0;

    if (mfs_inode_opened(r->ctx, ino, r->argv[1], -by) > 0)
        return 0;
    mfs_inode_free_if_idle(r->ctx, ino, mfs_request_int(r, 2), &status);
    if (status.p[0] == MFS_UNREF_STRIPES) {
        mfs_redis.ReplyWithStringBuffer(r->ctx, ino.p, ino.n);
        mfs_redis.ReplyWithStringBuffer(r->ctx, status.p, status.n);
        items = 2;
    }
    free(status.p);
    return items;
}

/* mfs_close sid stripe_size list: that many openers less. An item of the list: inode (8 bytes), how
 * many times it was closed (4, big-endian), when it was read (12). Those of which stripes may be
 * left, each followed by what mfs_inode_unref adds then. */
int mfs_command_close(const struct mfs_request *r)
{
    struct mfs_span list = mfs_request_arg(r, 3);
    long items = 0;

    mfs_redis.ReplyWithArray(r->ctx, MFS_REDIS_POSTPONED);
    for (size_t at = 0; at + 24 <= list.n; at += 24) {
        const unsigned char *n = (const unsigned char *)list.p + at + 8;
        int64_t by = (int64_t)n[0] << 24 | n[1] << 16 | n[2] << 8 | n[3];
        struct mfs_span ino = {list.p + at, 8};

        mfs_inode_read(r->ctx, ino, (struct mfs_span){list.p + at + 12, 12});
        items += by > 0 ? close_one(r, ino, by) : 0;
    }
    mfs_redis.ReplySetArrayLength(r->ctx, items);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return MFS_REDIS_OK;
}

/* mfs_disown ino stripe_size sid …: these sessions are dead; what mfs_inode_free_if_idle adds. */
int mfs_command_disown(const struct mfs_request *r)
{
    struct mfs_span ino = mfs_request_arg(r, 1);
    struct RedisModuleKey *key = mfs_key_open(r->ctx, 'O', ino, MFS_REDIS_WRITE);
    struct mfs_answer a = {0};

    for (int i = 3; i < r->argc && mfs_redis.ValueLength(key); i++)
        mfs_key_drop_field(key, r->argv[i]);
    mfs_key_close(key);
    mfs_inode_free_if_idle(r->ctx, ino, mfs_request_int(r, 2), &a);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_answer_send(&a, r->ctx);
}

/* mfs_told ino stripe_size: as mfs_inode_revoked; what mfs_inode_free_if_idle adds. */
int mfs_command_told(const struct mfs_request *r)
{
    struct mfs_span ino = mfs_request_arg(r, 1);
    struct mfs_answer a = {0};

    mfs_inode_revoked(r->ctx, ino);
    mfs_inode_free_if_idle(r->ctx, ino, mfs_request_int(r, 2), &a);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_answer_send(&a, r->ctx);
}

static int part_count(const struct mfs_parts *p)
{
    return p->at < 0 ? (p->r->argc - p->first) / 2 : p->r->argc > p->first;
}

static int64_t part_off(const struct mfs_parts *p, int k)
{
    return p->at < 0 ? mfs_request_int(p->r, p->first + 2 * k) : p->at;
}

static struct RedisModuleString *part_string(const struct mfs_parts *p, int k)
{
    return p->r->argv[p->at < 0 ? p->first + 2 * k + 1 : p->first];
}

static struct mfs_span part_bytes(const struct mfs_parts *p, int k)
{
    return mfs_string_span(part_string(p, k));
}

/* Where the parts end; -1: not of a stripe. */
static int64_t parts_end(const struct mfs_parts *p)
{
    int64_t last = 0;

    for (int k = 0; k < part_count(p); k++) {
        int64_t off = part_off(p, k), n = (int64_t)part_bytes(p, k).n;

        if (off < 0 || off > STRIPE_MAX || n > STRIPE_MAX - off)
            return -1;
        last = off + n > last ? off + n : last;
    }
    return last;
}

/* A short value gets as long as it has to be by being made anew. */
static void rebuild(struct RedisModuleCtx *ctx, struct RedisModuleKey *key, size_t last)
{
    struct mfs_span old = mfs_key_text(key);
    struct RedisModuleString *s = mfs_redis.CreateString(ctx, NULL, last);

    if (old.n > 0) /* none, if it is no string */
        memcpy((char *)mfs_string_span(s).p, old.p, old.n);
    mfs_redis.StringSet(key, s);
    mfs_redis.FreeString(ctx, s);
}

static void grow(struct RedisModuleCtx *ctx, struct RedisModuleKey *key, size_t old, size_t last)
{
    struct RedisModuleString *zeros;

    if (old > 0 && last <= REBUILD_MAX) {
        rebuild(ctx, key, last);
    } else if (old > 0) {
        mfs_redis.StringTruncate(key, last);
    } else {
        zeros = mfs_redis.CreateString(ctx, NULL, last);
        mfs_redis.StringSet(key, zeros);
        mfs_redis.FreeString(ctx, zeros);
    }
}

/* One part is the whole value. */
static bool is_value(const struct mfs_parts *p)
{
    return part_count(p) == 1 && part_off(p, 0) == 0;
}

/* Writes the parts into a string value, which ends at or beyond `last` then; its old length. */
static size_t write_parts(const struct mfs_parts *p, struct RedisModuleKey *key, size_t last)
{
    size_t old = mfs_redis.ValueLength(key), n;
    char *value;

    mfs_key_changed(key);
    if (old == 0 && is_value(p) && last > 0) {
        mfs_redis.StringSet(key, part_string(p, 0));
        return old;
    }
    if (last > old)
        grow(p->r->ctx, key, old, last);
    value = mfs_redis.StringDMA(key, &n, MFS_REDIS_WRITE);
    for (int k = 0; k < part_count(p); k++) {
        struct mfs_span part = part_bytes(p, k);

        if (part.n && value)
            memcpy(value + part_off(p, k), part.p, part.n);
    }
    return old;
}

/* What was here is lost, and would not be replaced by the parts: false. When all of it is, it is
 * forgotten. */
static bool mends(const struct mfs_parts *p, struct RedisModuleKey *key)
{
    int64_t lost = mfs_lost_bytes(p->r->ctx, key);

    if (lost < 0)
        return true;
    if (!is_value(p) || (int64_t)part_bytes(p, 0).n < lost)
        return false;
    mfs_key_delete(key);
    return true;
}

bool mfs_stripe_put_parts(const struct mfs_request *r)
{
    const struct mfs_parts parts = {.r = r, .first = 2, .at = -1};
    int64_t last = parts_end(&parts);
    struct RedisModuleKey *key;
    bool whole;
    size_t old;

    if (last < 0) {
        mfs_request_fail(r, EINVAL, "not of a stripe");
        return false;
    }
    key = mfs_redis.OpenKey(r->ctx, r->argv[1], MFS_REDIS_WRITE);
    whole = mends(&parts, key);
    old = whole ? write_parts(&parts, key, (size_t)last) : 0;
    mfs_key_close(key);
    if (!whole) {
        mfs_request_fail(r, EIO, "the rest of the stripe is lost");
        return false;
    }
    mfs_redis.ReplyWithArray(r->ctx, 2);
    mfs_redis.ReplyWithLongLong(r->ctx, (long long)old);
    mfs_redis.ReplyWithLongLong(r->ctx, last > (int64_t)old ? last : (long long)old);
    return true;
}

/* mfs_sput key off bytes [off bytes …]: old and new length. */
int mfs_command_sput(const struct mfs_request *r)
{
    if (mfs_stripe_put_parts(r))
        mfs_redis.ReplicateVerbatim(r->ctx);
    return MFS_REDIS_OK;
}

enum { INO = 1, TIME, SIZE, END, ROOM, SID, NAMED, CUTS, DROP, PARTS }; /* of mfs_commit */

/* The parts go into stripe 0 and are named, and so are the zeros before them in the same block, if
 * it ended before those; false: what they are parts of is lost. */
static bool store_parts(const struct mfs_commit *c, int64_t last, struct mfs_ranges *named)
{
    const struct mfs_parts *p = &c->parts;
    struct RedisModuleKey *key = mfs_key_stripe0(p->r->ctx, c->ino, MFS_REDIS_WRITE);
    bool whole = mends(p, key);
    int64_t old = whole ? (int64_t)write_parts(p, key, (size_t)last) : 0;

    mfs_key_close(key);
    if (!whole)
        return false;
    for (int k = 0; k < part_count(p); k++) {
        int64_t off = part_off(p, k), block = off / MFS_BLOCK * MFS_BLOCK;

        mfs_voids_name(named, off, off + (int64_t)part_bytes(p, k).n);
        mfs_voids_name(named, old > block ? old : block, off);
    }
    return true;
}

/* The content has grown, or changed: one version on. */
static void grown(const struct mfs_commit *c, char *rec)
{
    if (c->size > mfs_rec_i64(rec, MFS_REC_SIZE))
        mfs_rec_put_i64(rec, MFS_REC_SIZE, c->size);
    mfs_rec_add_i64(rec, MFS_REC_VERSION, 1);
    if (c->time.n) {
        memcpy(rec + MFS_REC_MTIME, c->time.p, c->time.n);
        memcpy(rec + MFS_REC_CTIME, c->time.p, c->time.n);
    }
}

/* It was cut since the client began to store what it names. */
static bool is_cut_since(const struct mfs_commit *c, const char *rec)
{
    return c->cuts.n && strtoll(c->cuts.p, NULL, 10) != mfs_rec_cuts(rec);
}

static int commit(struct RedisModuleCtx *ctx, const struct mfs_commit *c, struct mfs_inode *i,
                  struct mfs_ranges *named, struct mfs_space *space, const char **why)
{
    int64_t last = parts_end(&c->parts);
    struct mfs_room room;

    *why = "not a time, ranges and parts of a stripe";
    if ((c->time.n && c->time.n != MFS_TIME_LEN) || last < 0 || !mfs_room_parse(c->room, &room) ||
        !mfs_voids_name_list(named, c->named))
        return EINVAL;
    *why = "no inode";
    if (!i->rec)
        return ESTALE;
    *why = "a damaged inode";
    if (!mfs_inode_is_sound(i) || !mfs_space_load(ctx, c->ino, i, space))
        return EIO;
    *why = "cut meanwhile";
    if (is_cut_since(c, i->rec))
        return ECANCELED;
    *why = "the rest of the stripe is lost";
    if (part_count(&c->parts) && !store_parts(c, last, named))
        return EIO;
    mfs_voids_grow(ctx, c->ino, i, c->end, named, &room, space);
    grown(c, i->rec);
    mfs_inode_drop(ctx, c->ino, i, c->drop);
    mfs_key_changed(i->key);
    return 0;
}

int mfs_commit_run(struct RedisModuleCtx *ctx, const struct mfs_commit *c, struct mfs_answer *a,
                   const char **why)
{
    struct mfs_inode i = mfs_inode_open(ctx, c->ino, MFS_REDIS_WRITE);
    struct mfs_ranges named;
    struct mfs_space space;
    int rc;

    mfs_ranges_init(&named);
    mfs_space_init(&space);
    rc = commit(ctx, c, &i, &named, &space, why);
    if (!rc) {
        mfs_answer_add(a, i.rec, i.n);
        mfs_lease_others(ctx, c->ino, c->sid, true, a);
    }
    mfs_ranges_fini(&named);
    mfs_space_fini(&space);
    mfs_inode_close(&i);
    return rc;
}

/* mfs_commit ino time size end room sid named cuts drop [off bytes …]: size and end of data become
 * at least these; `named` (as in voids.h) and the bytes, for stripe 0, are content from now on, and
 * below the end of data. Without time (empty) that stays. What `drop` (MFS_DROP_*) says of the
 * file's privileges goes in the same step. The new record and behind it the sessions that have to
 * be told: other openers and holders of leases. ECANCELED: the record has not that many `cuts`
 * (empty: any), so that of what is named some may be gone. Without bytes next to nothing grows in
 * memory, so mfs_commit0 is allowed when memory is full. */
int mfs_command_commit(const struct mfs_request *r)
{
    const struct mfs_commit c = {.ino = mfs_request_arg(r, INO),
                                 .time = mfs_request_arg(r, TIME),
                                 .room = mfs_request_arg(r, ROOM),
                                 .sid = mfs_request_arg(r, SID),
                                 .named = mfs_request_arg(r, NAMED),
                                 .cuts = mfs_request_arg(r, CUTS),
                                 .size = mfs_request_int(r, SIZE),
                                 .end = mfs_request_int(r, END),
                                 .drop = mfs_request_int(r, DROP),
                                 .parts = {.r = r, .first = PARTS, .at = -1}};
    struct mfs_answer a = {0};
    const char *why;
    int rc = mfs_commit_run(r->ctx, &c, &a, &why);

    if (rc)
        return mfs_request_fail(r, rc, why);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_answer_send(&a, r->ctx);
}

int mfs_command_commit0(const struct mfs_request *r)
{
    return mfs_command_commit(r);
}
