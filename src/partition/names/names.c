/* Looking a name up, making one, and taking one away (shard.h).
 *
 * Answers that are strings begin with a status byte. Those that ask for something to be done first:
 * '\3' entry: an intent is in the way; '\4' seal: the directory is, or may be, being removed. */
#include "partition/commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/ino.h"
#include "partition/inode.h"
#include "partition/files/files.h"
#include "partition/files/leases.h"
#include "partition/names/names.h"
#include "partition/names/shard.h"
#include "partition/names/txn.h"
#include "partition/numbers.h"
#include "partition/files/voids.h"

/* A file's content, when it has at most `most` bytes and no voids. */
static void add_content(const struct mfs_request *r, const struct mfs_inode *i, struct mfs_span ino,
                        int64_t most, struct mfs_answer *a)
{
    int64_t size = mfs_rec_i64(i->rec, MFS_REC_SIZE);
    struct RedisModuleKey *stripe;
    struct mfs_span content;

    if (!mfs_inode_is_sound(i) || size <= 0 || size > most)
        return;
    stripe = mfs_key_stripe0(r->ctx, ino, MFS_REDIS_READ);
    if (mfs_voids_head(i, stripe, &content))
        mfs_answer_span(a, content);
    mfs_key_close(stripe);
}

/* A directory; a file that is here, or the name of one that has its home elsewhere. */
static bool may_lease(struct mfs_span entry, struct mfs_span here, const struct mfs_inode *i)
{
    return mfs_entry_type(entry) == MFS_TYPE_DIR ||
           (mfs_entry_type(entry) == MFS_TYPE_FILE && (i->rec || !mfs_inode_is_here(entry, here)));
}

/* mfs_lookup parent name here sid most: nil, or whether this session now has a lease ('\1' or
 * '\0'), length of the entry (1 byte), entry, and the inode's record where this is its home (empty
 * when it is not there any more). Behind a leased file's record its content, when it has at most
 * `most` bytes, which are no more than a stripe. */
int mfs_command_lookup(const struct mfs_request *r)
{
    struct RedisModuleKey *shard = mfs_key_open(r->ctx, 'D', mfs_request_arg(r, 1), MFS_REDIS_READ);
    struct RedisModuleString *held = mfs_key_field(shard, r->argv[2]);
    struct mfs_inode i = {0};
    struct mfs_answer a = {0};
    struct mfs_span entry;
    bool leased = false;
    int rc;

    mfs_key_close(shard);
    if (!held)
        return mfs_redis.ReplyWithNull(r->ctx);
    entry = mfs_string_span(held);
    if (!mfs_entry_is(entry)) {
        mfs_redis.FreeString(r->ctx, held);
        return mfs_request_fail(r, EIO, "not an entry");
    }
    if (mfs_inode_is_here(entry, mfs_request_arg(r, 3)))
        i = mfs_inode_open(r->ctx, mfs_entry_ino(entry), MFS_REDIS_READ);
    if (entry.n == MFS_ENTRY_LEN && may_lease(entry, mfs_request_arg(r, 3), &i))
        leased = mfs_lease_add(r->ctx, mfs_entry_ino(entry), mfs_request_arg(r, 4));
    if (leased)
        mfs_redis.ReplicateVerbatim(r->ctx);
    mfs_answer_byte(&a, leased);
    mfs_answer_byte(&a, entry.n);
    mfs_answer_span(&a, entry);
    mfs_answer_add(&a, i.rec, i.n);
    if (leased && i.rec && mfs_entry_type(entry) == MFS_TYPE_FILE)
        add_content(r, &i, mfs_entry_ino(entry), mfs_request_int(r, 5), &a);
    rc = mfs_answer_send(&a, r->ctx);
    mfs_inode_close(&i);
    mfs_redis.FreeString(r->ctx, held);
    return rc;
}

enum { PARENT = 1, NAME, HERE, TYPE, HOW, SID, RECORD, XATTRS }; /* of mfs_create */

/* The name is there; false: its inode is gone, so it is as if it were not. */
static bool answer_existing(const struct mfs_request *r, struct mfs_span entry, int *rc)
{
    bool home = mfs_inode_is_here(entry, mfs_request_arg(r, HERE));
    struct mfs_inode i = {0};
    struct mfs_answer a = {0};
    char holder[MFS_SESSION_LEN];

    if (!mfs_entry_is(entry)) {
        *rc = mfs_request_fail(r, EIO, "not an entry");
        return true;
    }
    if (home)
        i = mfs_inode_open(r->ctx, mfs_entry_ino(entry), MFS_REDIS_READ);
    if (home && !i.rec) {
        mfs_inode_close(&i);
        return false;
    }
    if (entry.n > MFS_ENTRY_LEN) {
        mfs_answer_byte(&a, MFS_ANSWER_INTENT);
        mfs_answer_span(&a, entry);
    } else if (mfs_request_arg(r, HOW).p[0] == 'x') {
        mfs_inode_close(&i);
        *rc = mfs_request_fail(r, EEXIST, "exists");
        return true;
    } else if (!i.rec || mfs_entry_type(entry) != MFS_TYPE_FILE ||
               mfs_file_end_is_leased(r->ctx, mfs_entry_ino(entry), mfs_request_arg(r, SID),
                                      holder)) {
        mfs_answer_byte(&a, MFS_ANSWER_EXISTS); /* to be opened by mfs_open, which tells more */
        mfs_answer_span(&a, entry);
    } else {
        mfs_inode_opened(r->ctx, mfs_entry_ino(entry), r->argv[SID], 1);
        mfs_redis.ReplicateVerbatim(r->ctx);
        mfs_answer_byte(&a, MFS_ANSWER_OPENED);
        mfs_answer_span(&a, mfs_entry_ino(entry));
        mfs_answer_add(&a, i.rec, i.n);
    }
    mfs_inode_close(&i);
    *rc = mfs_answer_send(&a, r->ctx);
    return true;
}

/* What the number says of how a file's data are kept. */
static uint64_t kind_of(struct mfs_span record)
{
    uint32_t hints = mfs_rec_u32(record.p, MFS_REC_RDEV);

    if (mfs_rec_u32(record.p, MFS_REC_MODE) >> 12 != MFS_TYPE_FILE)
        return 0;
    return (hints & MFS_HINT_TOGETHER ? MFS_INO_TOGETHER : 0) |
           (hints & MFS_HINT_ALONE ? MFS_INO_ALONE : 0) |
           (uint64_t)mfs_hint_stripe(hints) << MFS_INO_STRIPE_AT;
}

bool mfs_names_make(const struct mfs_request *r, struct mfs_span here, struct mfs_span record,
                    int xattrs, char ino[8])
{
    struct mfs_span id = {ino, 8};
    struct RedisModuleKey *key;

    if (!mfs_numbers_next(r->ctx, mfs_get_be16(here.p), kind_of(record), ino))
        return false;
    key = mfs_key_open(r->ctx, 'I', id, MFS_REDIS_WRITE);
    mfs_key_set(r->ctx, key, record.p, record.n);
    mfs_key_close(key);
    if (mfs_rec_u32(record.p, MFS_REC_MODE) >> 12 == MFS_TYPE_DIR &&
        (mfs_rec_i64(record.p, MFS_REC_STORED) > 0 || mfs_rec_reads(record.p) > 0))
        mfs_inode_list_ttl(r->ctx, id, record.p);
    if (r->argc <= xattrs)
        return true;
    key = mfs_key_open(r->ctx, 'A', id, MFS_REDIS_WRITE);
    for (int i = xattrs; i + 1 < r->argc; i += 2)
        mfs_redis.HashSet(key, 0, r->argv[i], r->argv[i + 1], NULL);
    mfs_key_changed(key);
    mfs_key_close(key);
    return true;
}

static int add_name(const struct mfs_request *r, struct RedisModuleKey *shard)
{
    struct mfs_span how = mfs_request_arg(r, HOW), sid = mfs_request_arg(r, SID);
    char entry[MFS_ENTRY_LEN], type = mfs_request_arg(r, TYPE).p[0];
    struct mfs_span ino = {entry, 8};
    struct mfs_answer a = {0};

    if (!mfs_names_make(r, mfs_request_arg(r, HERE), mfs_request_arg(r, RECORD), XATTRS, entry))
        return mfs_request_fail(r, ENOSPC, "no inode numbers left");
    entry[8] = type;
    mfs_key_set_field(r->ctx, shard, r->argv[NAME], entry, sizeof entry);
    if (type != MFS_TYPE_DIR && sid.n && how.n < 3)
        mfs_inode_opened(r->ctx, ino, r->argv[SID], 1);
    if (type == MFS_TYPE_DIR || how.n > 1)
        mfs_lease_add(r->ctx, ino, sid);
    mfs_answer_byte(&a, MFS_ANSWER_DONE);
    mfs_answer_span(&a, ino);
    mfs_lease_keeper(r->ctx, shard, mfs_request_arg(r, PARENT), sid, how.n > 1 ? how.p[1] : 0, &a);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_answer_send(&a, r->ctx);
}

static int answer_seal(const struct mfs_request *r, struct RedisModuleString *seal)
{
    struct mfs_answer a = {0};

    mfs_answer_byte(&a, MFS_ANSWER_SEALED);
    mfs_answer_span(&a, mfs_string_span(seal));
    mfs_redis.FreeString(r->ctx, seal);
    return mfs_answer_send(&a, r->ctx);
}

/* mfs_create parent name here type how sid record [xattr value …]; how: 'x' fails on an existing
 * name, 'o' opens an existing regular file if its home is here; behind it, if it wants leases (also
 * of a file that it opens), what mfs_lease_keeper takes; and 'u' if it opens a new file without
 * registering that.
 * '\0' ino and what mfs_lease_keeper adds: created (open for sid when that is not empty, nor 'u'; a
 * directory leased to it); '\1' ino record: existed, open now;
 * '\2' entry: exists, not opened; '\3', '\4'. */
int mfs_command_create(const struct mfs_request *r)
{
    struct RedisModuleString *held = NULL, *seal = NULL,
                             *sealed = mfs_redis.CreateString(r->ctx, "", 0);
    struct RedisModuleKey *shard;
    bool answered = false;
    int rc = 0;

    if (mfs_request_arg(r, RECORD).n < MFS_RECORD_FIXED || mfs_request_arg(r, HERE).n != 2 ||
        mfs_request_arg(r, TYPE).n != 1 || !mfs_request_arg(r, HOW).n) {
        mfs_redis.FreeString(r->ctx, sealed);
        return mfs_request_fail(r, EINVAL, "not a new inode");
    }
    shard = mfs_key_open(r->ctx, 'D', mfs_request_arg(r, PARENT), MFS_REDIS_WRITE);
    mfs_redis.HashGet(shard, 0, sealed, &seal, r->argv[NAME], &held, NULL);
    mfs_redis.FreeString(r->ctx, sealed);
    if (held) {
        answered = answer_existing(r, mfs_string_span(held), &rc);
        mfs_redis.FreeString(r->ctx, held);
    }
    if (answered && seal)
        mfs_redis.FreeString(r->ctx, seal);
    else if (!answered)
        rc = seal ? answer_seal(r, seal) : add_name(r, shard);
    mfs_key_close(shard);
    return rc;
}

void mfs_names_unref(struct RedisModuleCtx *ctx, struct mfs_span ino, const struct mfs_unref *u,
                     struct mfs_answer *a)
{
    struct mfs_answer others = {0};
    size_t at = a->n;

    mfs_lease_others(ctx, ino, u->sid, false, &others);
    mfs_answer_byte(a, 0);
    mfs_inode_unref(ctx, ino, u->time, u->stripe_size, others.n > 0, a);
    a->p[at] = (char)(a->n - at - 1);
    mfs_answer_add(a, others.p, others.n);
    mfs_answer_fini(&others);
}

/* Of the arguments from `time` on. */
static struct mfs_unref unref_of(const struct mfs_request *r, int time)
{
    return (struct mfs_unref){mfs_request_arg(r, time), mfs_request_int(r, time + 1),
                              mfs_request_arg(r, time + 2)};
}

/* False: the transaction's count is done already, by its client or by another one's housekeeping.
 * From now on it is. */
static bool settle_count(const struct mfs_request *r, int txn)
{
    const char done = MFS_OUTCOME_ABORTED;

    if (mfs_txn_is_decided(r, txn))
        return false;
    mfs_txn_decide(r, txn, &done, 1, MFS_TXN_LIFE_MS);
    mfs_txn_unnote(r, txn);
    return true;
}

/* mfs_unref ino time stripe_size sid [txn]: txn, if the name went in another partition, or never
 * came there: done once, whichever client asks for it, and how often. */
int mfs_command_unref(const struct mfs_request *r)
{
    struct mfs_answer a = {0};
    struct mfs_unref unref;

    if (mfs_request_arg(r, 2).n != 12)
        return mfs_request_fail(r, EINVAL, "not a time");
    if (mfs_txn_is(r, 5) && !settle_count(r, 5)) {
        mfs_answer_byte(&a, 1);
        mfs_answer_byte(&a, MFS_UNREF_GONE);
        return mfs_answer_send(&a, r->ctx);
    }
    unref = unref_of(r, 2);
    mfs_names_unref(r->ctx, mfs_request_arg(r, 1), &unref, &a);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_answer_send(&a, r->ctx);
}

enum { OF_INO = 8, OF_CTIME }; /* of mfs_unlink */

/* Is it the file that is to go? If its inode is here, only as it was looked at. */
static bool is_as_seen(const struct mfs_request *r, struct mfs_span entry, bool home)
{
    struct mfs_span ctime = mfs_request_arg(r, OF_CTIME);
    struct mfs_inode i;
    bool same = mfs_request_has(r, OF_INO, 8) && ctime.n == MFS_TIME_LEN &&
                memcmp(entry.p, mfs_request_arg(r, OF_INO).p, 8) == 0;

    if (!same || !home)
        return same;
    i = mfs_inode_open(r->ctx, mfs_entry_ino(entry), MFS_REDIS_READ);
    same = i.rec && memcmp(i.rec + MFS_REC_CTIME, ctime.p, ctime.n) == 0;
    mfs_inode_close(&i);
    return same;
}

static int remove_name(const struct mfs_request *r, struct RedisModuleKey *shard,
                       struct mfs_span entry)
{
    struct mfs_unref unref = unref_of(r, 4);
    struct mfs_answer a = {0};
    bool home = mfs_inode_is_here(entry, mfs_request_arg(r, 3));

    if (!mfs_entry_is(entry))
        return mfs_request_fail(r, EIO, "not an entry");
    if (entry.n > MFS_ENTRY_LEN) {
        mfs_answer_byte(&a, MFS_ANSWER_INTENT);
        mfs_answer_span(&a, entry);
        return mfs_answer_send(&a, r->ctx);
    }
    if (mfs_entry_type(entry) == MFS_TYPE_DIR)
        return mfs_request_fail(r, EISDIR, "a directory");
    if (r->argc > OF_CTIME && !is_as_seen(r, entry, home))
        return mfs_request_fail(r, ENOENT, "another file, or changed since");
    mfs_key_drop_field(shard, r->argv[2]);
    mfs_answer_byte(&a, home ? MFS_ANSWER_DONE : MFS_ANSWER_ELSEWHERE);
    mfs_answer_span(&a, mfs_entry_ino(entry));
    if (home)
        mfs_names_unref(r->ctx, mfs_entry_ino(entry), &unref, &a);
    else if (mfs_txn_is(r, 7))
        mfs_txn_note(r, 7, entry.p, 8);
    if (!home)
        mfs_lease_others(r->ctx, mfs_entry_ino(entry), unref.sid, false, &a);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_answer_send(&a, r->ctx);
}

/* mfs_unlink parent name here time stripe_size sid [txn [ino ctime]]. ENOENT: not this inode, or
 * changed since then, as far as that is known here. '\0' ino and what mfs_unref says: done;
 * '\1' ino holders: the entry is gone, which these sessions have leases of, the inode's home is
 * elsewhere, and txn notes that it counts one too many; '\3'. */
int mfs_command_unlink(const struct mfs_request *r)
{
    struct RedisModuleKey *shard;
    struct RedisModuleString *held;
    int rc;

    if (mfs_request_arg(r, 4).n != 12)
        return mfs_request_fail(r, EINVAL, "not a time");
    shard = mfs_key_open(r->ctx, 'D', mfs_request_arg(r, 1), MFS_REDIS_WRITE);
    held = mfs_key_field(shard, r->argv[2]);
    if (!held) {
        rc = mfs_request_fail(r, ENOENT, "no entry");
    } else {
        rc = remove_name(r, shard, mfs_string_span(held));
        mfs_redis.FreeString(r->ctx, held);
    }
    mfs_key_close(shard);
    return rc;
}
