/* Appending. What fits into stripe 0 is stored in one step. Otherwise the appender gets the place
 * behind the end for itself (P ino: its session and a number), stores the bytes in the stripes, and
 * only then does the file grow: no client sees bytes that are not there yet. An appender that asks
 * for it keeps the place afterwards: that is a lease on the file's end, under which it gathers
 * further appends (metadata.md, "Leases of a file's end"). */
#include "partition/commands.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "partition/files/files.h"
#include "partition/inode.h"
#include "partition/places.h"

enum { INO = 1, TIME, LEN, STRIPE, SID, NUMBER, HOW, BYTES }; /* of mfs_append */

static void put_owner(const struct mfs_request *r, struct RedisModuleKey *place)
{
    struct mfs_answer owner = {0};

    mfs_answer_span(&owner, mfs_request_arg(r, SID));
    mfs_answer_span(&owner, mfs_request_arg(r, NUMBER));
    if (mfs_request_int(r, HOW) & MFS_APPEND_KEEP)
        mfs_answer_byte(&owner, MFS_PLACE_LEASED);
    mfs_places_note(mfs_request_arg(r, INO));
    mfs_key_set(r->ctx, place, owner.p, owner.n);
    mfs_answer_fini(&owner);
}

static int take_place(const struct mfs_request *r, const struct mfs_inode *i)
{
    struct RedisModuleKey *place =
        mfs_key_open(r->ctx, 'P', mfs_request_arg(r, INO), MFS_REDIS_WRITE);
    struct mfs_answer a = {0};

    put_owner(r, place);
    mfs_key_close(place);
    mfs_redis.ReplicateVerbatim(r->ctx);
    mfs_answer_add(&a, i->rec, i->n);
    mfs_answer_byte(&a, MFS_APPEND_PLACE);
    return mfs_answer_send(&a, r->ctx);
}

/* After the bytes are stored: the place stays the appender's, or is free. */
static void keep_place(const struct mfs_request *r)
{
    struct RedisModuleKey *place =
        mfs_key_open(r->ctx, 'P', mfs_request_arg(r, INO), MFS_REDIS_WRITE);

    if (mfs_request_int(r, HOW) & MFS_APPEND_KEEP)
        put_owner(r, place);
    else
        mfs_key_delete(place);
    mfs_key_close(place);
}

/* What was committed, and how it went (0: nothing of that). */
static int answer(const struct mfs_request *r, const struct mfs_commit *c, char how)
{
    struct mfs_answer a = {0};
    const char *why;
    int rc = mfs_commit_run(r->ctx, c, &a, &why);

    if (rc) {
        mfs_answer_fini(&a);
        return mfs_request_fail(r, rc, why);
    }
    if (how == MFS_APPEND_STORED)
        keep_place(r);
    if (how)
        mfs_answer_byte(&a, (size_t)how);
    return mfs_answer_send(&a, r->ctx);
}

static int store(const struct mfs_request *r, int64_t size, int64_t last)
{
    int64_t how = mfs_request_int(r, HOW);
    const struct mfs_commit c = {.ino = mfs_request_arg(r, INO),
                                 .time = mfs_request_arg(r, TIME),
                                 .sid = mfs_request_arg(r, SID),
                                 .size = last,
                                 .drop = how & ~MFS_APPEND_KEEP,
                                 .parts = {.r = r, .first = BYTES, .at = size}};

    mfs_redis.ReplicateVerbatim(r->ctx);
    return answer(r, &c, MFS_APPEND_STORED);
}

static bool is_owner(struct mfs_span owner, struct mfs_span sid, struct mfs_span number)
{
    return owner.p && owner.n >= sid.n + number.n && !memcmp(owner.p, sid.p, sid.n) &&
           !memcmp(owner.p + sid.n, number.p, number.n);
}

/* Another append has the place: answers with its session. */
static bool is_place_taken(const struct mfs_request *r)
{
    struct RedisModuleKey *place =
        mfs_key_open(r->ctx, 'P', mfs_request_arg(r, INO), MFS_REDIS_READ);
    struct mfs_span holder = mfs_file_appender(place);
    bool taken = holder.p && !is_owner(mfs_key_text(place), mfs_request_arg(r, SID),
                                       mfs_request_arg(r, NUMBER));

    if (taken)
        mfs_redis.ReplyWithStringBuffer(r->ctx, holder.p, holder.n);
    mfs_key_close(place);
    return taken;
}

/* mfs_append ino time len stripe_size sid number how [bytes]. The record, the other openers, and
 * how it went (1 byte): 'S' stored, 'P' the place is taken for this one. Or just the session (8)
 * that has it. What `how` (MFS_DROP_*) says of privileges goes; with MFS_APPEND_KEEP the place is
 * this one's also when the bytes are stored. */
int mfs_command_append(const struct mfs_request *r)
{
    struct mfs_inode i;
    int64_t len = mfs_request_int(r, LEN), size = 0, last = 0;
    bool stores;
    int rc = MFS_REDIS_OK;

    if (!mfs_request_has(r, TIME, MFS_TIME_LEN) || !mfs_request_has(r, SID, MFS_SESSION_LEN) ||
        len < 0 || (r->argc > BYTES && (int64_t)mfs_request_arg(r, BYTES).n != len))
        return mfs_request_fail(r, EINVAL, "not a time, a session and so many bytes");
    i = mfs_inode_open(r->ctx, mfs_request_arg(r, INO), MFS_REDIS_READ);
    if (i.rec)
        size = mfs_rec_i64(i.rec, MFS_REC_SIZE);
    stores = r->argc > BYTES && !__builtin_add_overflow(size, len, &last) &&
             last <= mfs_inode_stripe_size(mfs_request_arg(r, INO), mfs_request_int(r, STRIPE));
    if (!i.rec)
        rc = mfs_request_fail(r, ESTALE, "no inode");
    else if (is_place_taken(r))
        stores = false;
    else if (!stores)
        rc = take_place(r, &i);
    stores = stores && i.rec;
    mfs_inode_close(&i);
    return stores ? store(r, size, last) : rc;
}

/* The same without bytes, so that nothing grows. */
int mfs_command_append_place(const struct mfs_request *r)
{
    return mfs_command_append(r);
}

enum { END_BEGIN = 3, END_END, END_SID, END_NUMBER, END_HOW }; /* of mfs_append_end */

/* The place is free, if it is not to be kept; false: it was not this one's. */
static bool give_back(const struct mfs_request *r, bool keep)
{
    struct RedisModuleKey *place =
        mfs_key_open(r->ctx, 'P', mfs_request_arg(r, INO), MFS_REDIS_WRITE);
    bool own =
        is_owner(mfs_key_text(place), mfs_request_arg(r, END_SID), mfs_request_arg(r, END_NUMBER));

    if (own && !keep)
        mfs_key_delete(place);
    mfs_key_close(place);
    return own;
}

static int answer_record(const struct mfs_request *r)
{
    struct mfs_inode i = mfs_inode_open(r->ctx, mfs_request_arg(r, INO), MFS_REDIS_READ);

    if (i.rec)
        mfs_redis.ReplyWithStringBuffer(r->ctx, i.rec, i.n);
    else
        mfs_request_fail(r, ESTALE, "no inode");
    mfs_inode_close(&i);
    return MFS_REDIS_OK;
}

/* mfs_append_end ino time begin end sid number how: the bytes are stored from `begin` to `end` (0:
 * they are not), the place is free, or with MFS_APPEND_KEEP kept. The record and the other openers;
 * ECANCELED when it had been taken away. */
int mfs_command_append_end(const struct mfs_request *r)
{
    int64_t end = mfs_request_int(r, END_END), how = mfs_request_int(r, END_HOW);
    char named[16];
    const struct mfs_commit c = {.ino = mfs_request_arg(r, INO),
                                 .time = mfs_request_arg(r, TIME),
                                 .sid = mfs_request_arg(r, END_SID),
                                 .named = {named, sizeof named},
                                 .size = end,
                                 .drop = how & ~MFS_APPEND_KEEP,
                                 .parts = {.r = r, .first = r->argc, .at = -1}};

    if (!give_back(r, how & MFS_APPEND_KEEP))
        return mfs_request_fail(r, ECANCELED, "not the appender");
    mfs_redis.ReplicateVerbatim(r->ctx);
    if (end == 0)
        return answer_record(r);
    mfs_put_le64(named, (uint64_t)mfs_request_int(r, END_BEGIN));
    mfs_put_le64(named + 8, (uint64_t)end);
    return answer(r, &c, 0);
}

/* mfs_append_break ino sid: the session is dead and appends no more. */
int mfs_command_append_break(const struct mfs_request *r)
{
    struct RedisModuleKey *place =
        mfs_key_open(r->ctx, 'P', mfs_request_arg(r, INO), MFS_REDIS_WRITE);
    struct mfs_span holder = mfs_file_appender(place), sid = mfs_request_arg(r, 2);

    if (mfs_span_is(holder, sid)) {
        mfs_key_delete(place);
        mfs_redis.ReplicateVerbatim(r->ctx);
    }
    mfs_key_close(place);
    return mfs_redis.ReplyWithNull(r->ctx);
}
