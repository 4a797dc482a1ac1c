/* A new file with its content, under a name that may be another file's until then: what memefs_put
 * does with a small object, in one step. */
#include "partition/commands.h"

#include <errno.h>
#include <string.h>

#include "base/ino.h"
#include "partition/files/leases.h"
#include "partition/inode.h"
#include "partition/names/names.h"
#include "partition/names/shard.h"
#include "partition/names/txn.h"

enum { PARENT = 1, NAME, HERE, HOW, SID, TIME, STRIPE, RECORD, CONTENT, XATTRS };

/* Nothing is done. */
static int answer_status(const struct mfs_request *r, enum mfs_answer_status status,
                         struct mfs_span more)
{
    mfs_redis.ReplyWithArray(r->ctx, 2);
    mfs_redis.ReplyWithLongLong(r->ctx, status);
    return mfs_redis.ReplyWithStringBuffer(r->ctx, more.p ? more.p : "", more.n);
}

/* What is under the name: may it be replaced? False: no, as *rc answers. *old: what counts a name
 * less then; p NULL: nothing does. */
static bool take_old(const struct mfs_request *r, struct mfs_span entry, struct mfs_span *old,
                     int *rc)
{
    struct mfs_inode i;
    bool gone;

    if (!mfs_entry_is(entry)) {
        *rc = mfs_request_fail(r, EIO, "not an entry");
    } else if (entry.n > MFS_ENTRY_LEN) {
        *rc = answer_status(r, MFS_ANSWER_INTENT, entry);
    } else if (!mfs_inode_is_here(entry, mfs_request_arg(r, HERE))) {
        *rc = answer_status(r, MFS_ANSWER_EXISTS, entry);
    } else {
        i = mfs_inode_open(r->ctx, mfs_entry_ino(entry), MFS_REDIS_READ);
        gone = !i.rec;
        mfs_inode_close(&i);
        if (!gone)
            *old = mfs_entry_ino(entry);
        if (gone || (mfs_request_arg(r, HOW).p[0] != 'x' && mfs_entry_type(entry) != MFS_TYPE_DIR))
            return true;
        *rc = mfs_request_arg(r, HOW).p[0] == 'x' ? mfs_request_fail(r, EEXIST, "exists")
                                                  : mfs_request_fail(r, EISDIR, "a directory");
    }
    return false;
}

static void store_content(const struct mfs_request *r, struct mfs_span ino)
{
    struct RedisModuleKey *stripe;

    if (mfs_request_arg(r, CONTENT).n == 0)
        return;
    stripe = mfs_key_stripe0(r->ctx, ino, MFS_REDIS_WRITE);
    mfs_redis.StringSet(stripe, r->argv[CONTENT]);
    mfs_key_changed(stripe);
    mfs_key_close(stripe);
}

/* `old` is a copy: the entry changes. */
static int replace(const struct mfs_request *r, struct RedisModuleKey *shard, struct mfs_span old)
{
    struct mfs_span how = mfs_request_arg(r, HOW), sid = mfs_request_arg(r, SID);
    const struct mfs_unref unref = {mfs_request_arg(r, TIME), mfs_request_int(r, STRIPE), sid};
    struct mfs_answer made = {0}, gone = {0};
    char entry[MFS_ENTRY_LEN];
    struct mfs_span ino = {entry, 8};

    if (!mfs_names_make(r, mfs_request_arg(r, HERE), mfs_request_arg(r, RECORD), XATTRS, entry))
        return mfs_request_fail(r, ENOSPC, "no inode numbers left");
    entry[8] = MFS_TYPE_FILE;
    store_content(r, ino);
    mfs_key_set_field(r->ctx, shard, r->argv[NAME], entry, sizeof entry);
    mfs_answer_byte(&made, how.n == 2 && mfs_lease_add(r->ctx, ino, sid));
    mfs_answer_span(&made, ino);
    mfs_lease_keeper(r->ctx, shard, mfs_request_arg(r, PARENT), sid, how.n > 1 ? how.p[1] : 0,
                     &made);
    if (old.p) {
        mfs_answer_span(&gone, old);
        mfs_names_unref(r->ctx, old, &unref, &gone);
    }
    mfs_redis.ReplicateVerbatim(r->ctx);
    mfs_redis.ReplyWithArray(r->ctx, 3);
    mfs_redis.ReplyWithLongLong(r->ctx, MFS_ANSWER_DONE);
    mfs_answer_send(&made, r->ctx);
    return mfs_answer_send(&gone, r->ctx);
}

/* All of the content goes into stripe 0. */
static bool is_good(const struct mfs_request *r)
{
    struct mfs_span record = mfs_request_arg(r, RECORD);

    return record.n == MFS_RECORD_FIXED &&
           mfs_rec_u32(record.p, MFS_REC_MODE) >> 12 == MFS_TYPE_FILE &&
           mfs_request_arg(r, HERE).n == 2 && mfs_request_arg(r, HOW).n > 0 &&
           mfs_request_arg(r, TIME).n == MFS_TIME_LEN &&
           (int64_t)mfs_request_arg(r, CONTENT).n <=
               mfs_stripe_size(mfs_hint_stripe(mfs_rec_u32(record.p, MFS_REC_RDEV)),
                               mfs_request_int(r, STRIPE)) &&
           mfs_rec_i64(record.p, MFS_REC_SIZE) == (int64_t)mfs_request_arg(r, CONTENT).n &&
           mfs_rec_i64(record.p, MFS_REC_END) == (int64_t)mfs_request_arg(r, CONTENT).n;
}

/* mfs_replace parent name here how sid time stripe_size record content [xattr value …]: a new
 * regular file under the name, in place of what is there; how: 'x' if nothing may be, 'o' anything
 * but a directory that has its home here; behind it, if it wants a lease, what mfs_lease_keeper
 * takes, and behind that 'b', of a batch, if it wants none of the file itself. DONE, whether it has
 * got it, ino, what mfs_lease_keeper adds; and of what was replaced ino and what mfs_names_unref
 * adds, or ''. Undone: EXISTS entry, of an inode elsewhere; INTENT entry; SEALED seal. */
int mfs_command_replace(const struct mfs_request *r)
{
    struct RedisModuleString *held = NULL, *seal = NULL,
                             *sealed = mfs_redis.CreateString(r->ctx, "", 0);
    struct mfs_span old = {NULL, 0};
    struct RedisModuleKey *shard;
    char copy[8];
    int rc = 0;

    if (!is_good(r)) {
        mfs_redis.FreeString(r->ctx, sealed);
        return mfs_request_fail(r, EINVAL, "not a new file with its content");
    }
    shard = mfs_key_open(r->ctx, 'D', mfs_request_arg(r, PARENT), MFS_REDIS_WRITE);
    mfs_redis.HashGet(shard, 0, sealed, &seal, r->argv[NAME], &held, NULL);
    mfs_redis.FreeString(r->ctx, sealed);
    if (!held || take_old(r, mfs_string_span(held), &old, &rc)) {
        if (old.p)
            old.p = memcpy(copy, old.p, sizeof copy);
        rc = seal && !old.p ? answer_status(r, MFS_ANSWER_SEALED, mfs_string_span(seal))
                            : replace(r, shard, old);
    }
    if (held)
        mfs_redis.FreeString(r->ctx, held);
    if (seal)
        mfs_redis.FreeString(r->ctx, seal);
    mfs_key_close(shard);
    return rc;
}
