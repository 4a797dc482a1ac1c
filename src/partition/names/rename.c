/* rename. Within one partition it is one step; across partitions an intent goes into the source
 * entry (begin), the target's partition decides (commit), the source entry follows (settle). See
 * docs/design/metadata.md. Answers are arrays that begin with a status (enum mfs_answer_status):
 *
 *     DONE …                       below
 *     INTENT which entry           an intent is in the way of the source (1) or target (2)
 *     SEALED seal                  the new parent is, or may be, being removed
 *     NEEDS_LOCK source target     the directories that change their parent are not those that the
 *                                  caller has checked while holding the lock on moves
 *     NEEDS_SEAL target            the directory that is replaced is not the one that the caller
 *                                  has sealed
 *
 * What leaves a whiteout needs memory for good, so that it has a command of its own, which is
 * refused when that is full. */
#include "partition/commands.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "partition/inode.h"
#include "partition/files/leases.h"
#include "partition/names/names.h"
#include "partition/names/shard.h"
#include "partition/names/txn.h"

enum { NOREPLACE = 1, EXCHANGE = 2 };

enum { CHECKED = 10, SEALED, TODO, SID, UNREF_TXN, WHITEOUT }; /* of both that decide */

/* A rename where it is decided. Spans are the request's, or its slots'. */
struct rename {
    const struct mfs_request *r;
    struct mfs_span to, source, target; /* target.p NULL: nothing is there */
    struct mfs_span seal;
    struct mfs_span here; /* this partition's number */
    struct mfs_unref unref;
    int new_name, txn; /* arguments */
    int64_t flags;
    bool same_parent;
    bool leased; /* the file under its new name, to the session */
};

static bool is_same_inode(struct mfs_span a, struct mfs_span b)
{
    return a.p && b.p && !memcmp(a.p, b.p, 8);
}

static bool is_dir(struct mfs_span entry)
{
    return entry.p && mfs_entry_type(entry) == MFS_TYPE_DIR;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void reply_span(const struct mfs_request *r, struct mfs_span s)
{
    mfs_redis.ReplyWithStringBuffer(r->ctx, s.p ? s.p : "", s.n);
}

/* Status and up to two strings. */
static int answer(const struct mfs_request *r, enum mfs_answer_status status, struct mfs_span a,
                  const struct mfs_span *b)
{
    mfs_redis.ReplyWithArray(r->ctx, b ? 3 : 2);
    mfs_redis.ReplyWithLongLong(r->ctx, status);
    reply_span(r, a);
    if (b)
        reply_span(r, *b);
    return MFS_REDIS_OK;
}

static int answer_intent(const struct mfs_request *r, long long which, struct mfs_span entry)
{
    mfs_redis.ReplyWithArray(r->ctx, 3);
    mfs_redis.ReplyWithLongLong(r->ctx, MFS_ANSWER_INTENT);
    mfs_redis.ReplyWithLongLong(r->ctx, which);
    reply_span(r, entry);
    return MFS_REDIS_OK;
}

/* Both are names of one inode: nothing is to be done. */
static int answer_same(const struct rename *n)
{
    mfs_redis.ReplyWithArray(n->r->ctx, 4);
    mfs_redis.ReplyWithLongLong(n->r->ctx, MFS_ANSWER_DONE);
    reply_span(n->r, n->source);
    reply_span(n->r, n->target);
    return mfs_redis.ReplyWithStringBuffer(n->r->ctx, "same", 4);
}

static bool is_file(struct mfs_span entry)
{
    return entry.p && mfs_entry_type(entry) == MFS_TYPE_FILE;
}

/* Holders of a lease that this partition knows of: of a regular file's name here, or of its
 * attributes. */
static void reply_holders(struct RedisModuleCtx *ctx, struct mfs_span entry)
{
    struct mfs_answer a = {0};

    if (!is_file(entry)) {
        mfs_redis.ReplyWithNull(ctx);
        return;
    }
    mfs_lease_others(ctx, mfs_entry_ino(entry), (struct mfs_span){NULL, 0}, false, &a);
    mfs_answer_send(&a, ctx);
}

/* The record of a regular file that has its home here, else ''. */
static void reply_record(struct RedisModuleCtx *ctx, struct mfs_span entry, struct mfs_span here)
{
    struct mfs_inode i = {0};

    if (is_file(entry) && mfs_inode_is_here(entry, here))
        i = mfs_inode_open(ctx, mfs_entry_ino(entry), MFS_REDIS_READ);
    mfs_redis.ReplyWithStringBuffer(ctx, i.rec ? i.rec : "", i.rec ? i.n : 0);
    mfs_inode_close(&i);
}

/* `unref`: as of mfs_names_unref, or empty. */
static int answer_done(const struct rename *n, struct mfs_answer *unref)
{
    struct mfs_span status = {"", 0};
    struct mfs_answer keeper = {0};

    if (unref->n)
        status = (struct mfs_span){unref->p + 1, (unsigned char)unref->p[0]};
    mfs_redis.ReplyWithArray(n->r->ctx, 9);
    mfs_redis.ReplyWithLongLong(n->r->ctx, MFS_ANSWER_DONE);
    reply_span(n->r, n->source);
    reply_span(n->r, n->target);
    reply_span(n->r, status);
    mfs_answer_fini(unref);
    reply_holders(n->r->ctx, n->source);
    reply_holders(n->r->ctx, n->target);
    mfs_shard_keeper(n->r->ctx, n->to, n->unref.sid, &keeper);
    mfs_answer_send(&keeper, n->r->ctx);
    reply_record(n->r->ctx, n->source, n->here);
    return mfs_redis.ReplyWithLongLong(n->r->ctx, n->leased);
}

/* ---- may it be? ------------------------------------------------------------------------------ */

static int wrong_type(const struct rename *n)
{
    if (!n->target.p || n->flags == EXCHANGE || is_dir(n->source) == is_dir(n->target))
        return 0;
    return is_dir(n->source) ? ENOTDIR : EISDIR;
}

/* The caller has checked just the directories that change their parent, each 8 bytes, zeros for
 * none; nothing, if none does. */
static bool is_checked(const struct rename *n)
{
    struct mfs_span checked = mfs_request_arg(n->r, CHECKED);
    bool moved = !n->same_parent && is_dir(n->source);
    bool other = !n->same_parent && n->flags == EXCHANGE && is_dir(n->target);
    char want[16] = {0};

    if (!moved && !other && !checked.n)
        return true;
    if (moved)
        memcpy(want, n->source.p, 8);
    if (other)
        memcpy(want + 8, n->target.p, 8);
    return checked.n == sizeof want && !memcmp(checked.p, want, sizeof want);
}

/* The caller has sealed just the directory that is replaced, or none. */
static bool is_sealed(const struct rename *n)
{
    struct mfs_span sealed = mfs_request_arg(n->r, SEALED);
    bool replaced = is_dir(n->target) && n->flags != EXCHANGE;

    return sealed.n == (replaced ? 8 : 0) && (!replaced || !memcmp(sealed.p, n->target.p, 8));
}

/* May the source take the place of the target? False: no, as *rc answers. */
static bool may_be(const struct rename *n, int *rc)
{
    int wrong = wrong_type(n);

    if (n->flags == EXCHANGE && !n->target.p)
        *rc = mfs_request_fail(n->r, ENOENT, "no target");
    else if (n->flags == NOREPLACE && n->target.p)
        *rc = mfs_request_fail(n->r, EEXIST, "exists");
    else if (is_same_inode(n->target, n->source))
        *rc = answer_same(n);
    else if (wrong)
        *rc = mfs_request_fail(n->r, wrong, "target is of another kind");
    else if (!is_checked(n))
        *rc = answer(n->r, MFS_ANSWER_NEEDS_LOCK, n->source, &n->target);
    else if (!is_sealed(n))
        *rc = answer(n->r, MFS_ANSWER_NEEDS_SEAL, n->target, NULL);
    else if (n->seal.p && !n->target.p)
        *rc = answer(n->r, MFS_ANSWER_SEALED, n->seal, NULL);
    else
        return true;
    return false;
}

/* What is under the new name; false: something is in the way, as *rc answers. */
static bool take_target(struct rename *n, const struct mfs_slot *slot, int *rc)
{
    n->target = slot->entry;
    n->seal = slot->seal;
    if (!n->target.p)
        return true;
    if (!mfs_entry_is(n->target))
        *rc = mfs_request_fail(n->r, EIO, "not an entry");
    else if (n->target.n > MFS_ENTRY_LEN)
        *rc = answer_intent(n->r, 2, n->target);
    else
        return true;
    return false;
}

/* ---- what is done ---------------------------------------------------------------------------- */

/* Takes one name from the inode that was replaced, if its home is here. Elsewhere it is to follow,
 * which the transaction `unref_txn` notes. */
static void unref_target(const struct rename *n, struct mfs_answer *unref)
{
    if (!n->target.p || n->flags == EXCHANGE || is_dir(n->target))
        return;
    if (mfs_inode_is_here(n->target, n->here))
        mfs_names_unref(n->r->ctx, mfs_entry_ino(n->target), &n->unref, unref);
    else
        mfs_txn_note(n->r, UNREF_TXN, n->target.p, 8);
}

static void touch_ctime(struct RedisModuleCtx *ctx, struct mfs_span entry, struct mfs_span here,
                        struct mfs_span time)
{
    struct mfs_inode i;

    if (!mfs_inode_is_here(entry, here))
        return;
    i = mfs_inode_open(ctx, mfs_entry_ino(entry), MFS_REDIS_WRITE);
    if (i.rec) {
        memcpy(i.rec + MFS_REC_CTIME, time.p, MFS_TIME_LEN);
        mfs_key_changed(i.key);
    }
    mfs_inode_close(&i);
}

/* A directory that has moved is leased to the session that moved it, whose kernel has its name
 * already. */
static void lease_moved(struct RedisModuleCtx *ctx, struct mfs_span entry, struct mfs_span sid)
{
    if (is_dir(entry))
        mfs_lease_add(ctx, mfs_entry_ino(entry), sid);
}

/* Makes what takes the source's place: `whiteout` is empty, or as in layout.h. */
static void leave(const struct mfs_request *r, struct mfs_span dir, int name,
                  struct mfs_span whiteout)
{
    struct mfs_span here = {whiteout.p, 2}, record;
    struct RedisModuleString *seal;
    char entry[MFS_ENTRY_LEN];

    mfs_shard_drop(r->ctx, dir, r->argv[name]);
    if (whiteout.n < MFS_WHITEOUT_LEN)
        return;
    seal = mfs_shard_seal(r->ctx, dir);
    if (seal) {
        mfs_redis.FreeString(r->ctx, seal);
        return;
    }
    record = (struct mfs_span){whiteout.p + 2, whiteout.n - 2};
    if (!mfs_names_make(r, here, record, r->argc, entry))
        return;
    entry[MFS_ENTRY_LEN - 1] = MFS_TYPE_CHAR;
    mfs_shard_set(r->ctx, dir, r->argv[name], entry, sizeof entry);
}

/* The new name is the source's. */
static void put_target(struct rename *n)
{
    mfs_shard_set(n->r->ctx, n->to, n->r->argv[n->new_name], n->source.p, n->source.n);
    touch_ctime(n->r->ctx, n->source, n->here, n->unref.time);
    if (is_file(n->source))
        n->leased = mfs_lease_add(n->r->ctx, mfs_entry_ino(n->source), n->unref.sid);
    else
        lease_moved(n->r->ctx, n->source, n->unref.sid);
}

/* Are the arguments from `here` on what they have to be? */
static bool is_sound(const struct mfs_request *r, int here, int txn)
{
    return mfs_request_has(r, here, 2) && mfs_request_has(r, here + 1, MFS_TIME_LEN) &&
           mfs_txn_is(r, txn) && mfs_txn_is(r, UNREF_TXN);
}

static struct rename rename_of(const struct mfs_request *r, int here, int txn)
{
    return (struct rename){.r = r,
                           .here = mfs_request_arg(r, here),
                           .unref = {mfs_request_arg(r, here + 1), mfs_request_int(r, here + 2),
                                     mfs_request_arg(r, SID)},
                           .flags = mfs_request_int(r, here + 3),
                           .txn = txn};
}

/* ---- within this partition ------------------------------------------------------------------- */

enum { FROM = 1, NAME, TO, NEW_NAME, HERE, TXN = 9 }; /* of mfs_rename */

static void rename_here(struct rename *n)
{
    const struct mfs_request *r = n->r;
    struct mfs_span from = mfs_request_arg(r, FROM), todo = mfs_request_arg(r, TODO);

    if (todo.n) {
        mfs_txn_commit(r, n->txn, (struct mfs_span){"", 0}, todo, 0);
        mfs_txn_note(r, n->txn, NULL, 0);
    }
    put_target(n);
    if (n->flags == EXCHANGE) {
        mfs_shard_set(r->ctx, from, r->argv[NAME], n->target.p, n->target.n);
        touch_ctime(r->ctx, n->target, n->here, n->unref.time);
        lease_moved(r->ctx, n->target, n->unref.sid);
    } else {
        leave(r, from, NAME, mfs_request_arg(r, WHITEOUT));
    }
}

static int rename_slots(struct rename *n, const struct mfs_slot *from, const struct mfs_slot *to)
{
    struct mfs_answer unref = {0};
    int rc = 0;

    n->source = from->entry;
    if (!n->source.p)
        return mfs_request_fail(n->r, ENOENT, "no entry");
    if (!mfs_entry_is(n->source))
        return mfs_request_fail(n->r, EIO, "not an entry");
    if (n->source.n > MFS_ENTRY_LEN)
        return answer_intent(n->r, 1, n->source);
    if (!take_target(n, to, &rc) || !may_be(n, &rc))
        return rc;
    if (mfs_request_arg(n->r, TODO).n && mfs_txn_is_decided(n->r, n->txn))
        return mfs_request_fail(n->r, ECANCELED, "aborted");
    rename_here(n);
    unref_target(n, &unref);
    mfs_redis.ReplicateVerbatim(n->r->ctx);
    return answer_done(n, &unref);
}

/* mfs_rename parent name new_parent new_name here time stripe_size flags txn checked sealed todo
 * sid unref_txn whiteout. DONE, source entry, target entry or '', what mfs_inode_unref answered or
 * '' or 'same', holders of a lease of the source, of the target, other keeper of the target's
 * shard, the source's record (reply_record), whether the session has a lease of its new name. The
 * holders are those known here of a regular file, else nil; of no 'same' more than that. */
int mfs_command_rename(const struct mfs_request *r)
{
    struct mfs_span from_dir = mfs_request_arg(r, FROM), to_dir = mfs_request_arg(r, TO);
    struct rename n = rename_of(r, HERE, TXN);
    struct mfs_slot from, to;
    int rc;

    if (to_dir.n != 8 || !is_sound(r, HERE, TXN))
        return mfs_request_fail(r, EINVAL, "not a rename");
    n.to = to_dir;
    n.new_name = NEW_NAME;
    n.same_parent = !memcmp(from_dir.p, to_dir.p, 8);
    from = mfs_slot_read(r->ctx, from_dir, r->argv[NAME]);
    to = mfs_slot_read(r->ctx, to_dir, r->argv[NEW_NAME]);
    rc = rename_slots(&n, &from, &to);
    mfs_slot_fini(&from);
    mfs_slot_fini(&to);
    return rc;
}

int mfs_command_rename_leaving(const struct mfs_request *r)
{
    return mfs_command_rename(r);
}

/* ---- across partitions ----------------------------------------------------------------------- */

enum {
    BEGIN_TXN = 3,
    BEGIN_DECIDER,
    BEGIN_SAME_PARENT,
    BEGIN_CHECKED,
    BEGIN_HERE,
    BEGIN_TIME,
    BEGIN_SID
}; /* of mfs_rename_begin */

static void put_intent(const struct mfs_request *r, struct mfs_span entry)
{
    struct mfs_answer a = {0};

    mfs_answer_span(&a, entry);
    mfs_answer_span(&a, mfs_request_arg(r, BEGIN_TXN));
    mfs_answer_span(&a, mfs_request_arg(r, BEGIN_DECIDER));
    mfs_shard_set(r->ctx, mfs_request_arg(r, FROM), r->argv[NAME], a.p, a.n);
    a.n = 0;
    mfs_answer_span(&a, mfs_request_arg(r, FROM));
    mfs_answer_span(&a, mfs_request_arg(r, NAME));
    mfs_txn_note(r, BEGIN_TXN, a.p, a.n);
    mfs_answer_fini(&a);
}

/* From now on nobody gets a lease of the name here, so its holders are known. If the rename does
 * not happen after all, the ctime has changed for nothing. */
static int answer_begun(const struct mfs_request *r, struct mfs_span entry)
{
    struct mfs_span here = mfs_request_arg(r, BEGIN_HERE);

    if (!is_dir(entry))
        touch_ctime(r->ctx, entry, here, mfs_request_arg(r, BEGIN_TIME));
    mfs_redis.ReplyWithArray(r->ctx, 4);
    mfs_redis.ReplyWithLongLong(r->ctx, MFS_ANSWER_DONE);
    reply_span(r, entry);
    reply_holders(r->ctx, entry);
    reply_record(r->ctx, entry, here);
    if (is_file(entry) && mfs_inode_is_here(entry, here)) /* of its attributes */
        mfs_lease_add(r->ctx, mfs_entry_ino(entry), mfs_request_arg(r, BEGIN_SID));
    mfs_redis.ReplicateVerbatim(r->ctx);
    return MFS_REDIS_OK;
}

static int begin(const struct mfs_request *r, struct mfs_span entry)
{
    struct mfs_span checked = mfs_request_arg(r, BEGIN_CHECKED), none = {"", 0};
    bool same_parent = mfs_request_arg(r, BEGIN_SAME_PARENT).p[0] == '1';

    if (!entry.p)
        return mfs_request_fail(r, ENOENT, "no entry");
    if (!mfs_entry_is(entry))
        return mfs_request_fail(r, EIO, "not an entry");
    if (entry.n > MFS_ENTRY_LEN)
        return answer_intent(r, 1, entry);
    if (!same_parent && is_dir(entry) && (checked.n < 8 || memcmp(checked.p, entry.p, 8)))
        return answer(r, MFS_ANSWER_NEEDS_LOCK, entry, &none);
    put_intent(r, entry);
    return answer_begun(r, entry);
}

/* mfs_rename_begin parent name txn decider same_parent checked here time sid: DONE, entry, holders
 * of a lease of it known here, record, as of mfs_rename. What is no directory and has its home here
 * has that ctime now. */
int mfs_command_rename_begin(const struct mfs_request *r)
{
    struct mfs_slot slot;
    int rc;

    if (!mfs_txn_is(r, BEGIN_TXN) || !mfs_request_has(r, BEGIN_DECIDER, 2) ||
        !mfs_request_has(r, BEGIN_TIME, MFS_TIME_LEN))
        return mfs_request_fail(r, EINVAL, "not a transaction and a time");
    slot = mfs_slot_read(r->ctx, mfs_request_arg(r, FROM), r->argv[NAME]);
    rc = begin(r, slot.entry);
    mfs_slot_fini(&slot);
    return rc;
}

int mfs_command_rename_begin_leaving(const struct mfs_request *r)
{
    return mfs_command_rename_begin(r);
}

enum { COMMIT_TO = 1, COMMIT_NAME, COMMIT_ENTRY, COMMIT_HERE, COMMIT_TXN = 8, COMMIT_SAME_PARENT };

static int commit(struct rename *n, const struct mfs_slot *to)
{
    const struct mfs_request *r = n->r;
    struct mfs_span todo = mfs_request_arg(r, TODO), becomes = mfs_request_arg(r, WHITEOUT);
    struct mfs_answer unref = {0};
    int rc = 0;

    if (mfs_txn_is_decided(r, n->txn))
        return mfs_request_fail(r, ECANCELED, "aborted");
    if (!take_target(n, to, &rc) || !may_be(n, &rc))
        return rc;
    mfs_txn_commit(r, n->txn, n->flags == EXCHANGE ? n->target : becomes, todo, 0);
    if (todo.n)
        mfs_txn_note(r, n->txn, NULL, 0);
    put_target(n);
    if (n->flags == EXCHANGE)
        touch_ctime(r->ctx, n->target, n->here, n->unref.time);
    unref_target(n, &unref);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return answer_done(n, &unref);
}

/* mfs_rename_commit new_parent new_name entry here time stripe_size flags txn same_parent checked
 * sealed todo sid unref_txn whiteout: as mfs_rename. */
int mfs_command_rename_commit(const struct mfs_request *r)
{
    struct rename n = rename_of(r, COMMIT_HERE, COMMIT_TXN);
    struct mfs_slot to;
    int rc;

    if (!mfs_request_has(r, COMMIT_ENTRY, MFS_ENTRY_LEN) || !is_sound(r, COMMIT_HERE, COMMIT_TXN))
        return mfs_request_fail(r, EINVAL, "not a rename");
    n.to = mfs_request_arg(r, COMMIT_TO);
    n.new_name = COMMIT_NAME;
    n.source = mfs_request_arg(r, COMMIT_ENTRY);
    n.same_parent = mfs_request_arg(r, COMMIT_SAME_PARENT).p[0] == '1';
    to = mfs_slot_read(r->ctx, n.to, r->argv[COMMIT_NAME]);
    rc = commit(&n, &to);
    mfs_slot_fini(&to);
    return rc;
}

int mfs_command_rename_commit_leaving(const struct mfs_request *r)
{
    return mfs_command_rename_commit(r);
}

/* ---- what follows ---------------------------------------------------------------------------- */

enum { SETTLE_TXN = 3, SETTLE_ENTRY, SETTLE_SID };

/* The source entry becomes what it is to be, if the intent is still there. */
static void settle(const struct mfs_request *r, struct mfs_span now)
{
    struct mfs_span dir = mfs_request_arg(r, FROM), becomes = mfs_request_arg(r, SETTLE_ENTRY);

    if (now.n != MFS_INTENT_LEN ||
        memcmp(now.p + MFS_ENTRY_LEN, mfs_request_arg(r, SETTLE_TXN).p, MFS_TXN_LEN))
        return;
    if (!becomes.n || becomes.n > MFS_ENTRY_LEN)
        leave(r, dir, NAME, becomes);
    else if (becomes.n == 1)
        mfs_shard_set(r->ctx, dir, r->argv[NAME], now.p, MFS_ENTRY_LEN);
    else
        mfs_shard_set(r->ctx, dir, r->argv[NAME], becomes.p, becomes.n);
}

/* Is the entry what it was to become, and leased to the session? */
static bool lease_settled(const struct mfs_request *r)
{
    struct mfs_span becomes = mfs_request_arg(r, SETTLE_ENTRY);
    struct mfs_slot slot = mfs_slot_read(r->ctx, mfs_request_arg(r, FROM), r->argv[NAME]);
    bool same = becomes.n == MFS_ENTRY_LEN && slot.entry.n == becomes.n &&
                !memcmp(slot.entry.p, becomes.p, becomes.n);

    if (same)
        lease_moved(r->ctx, becomes, mfs_request_arg(r, SETTLE_SID));
    mfs_slot_fini(&slot);
    return same;
}

/* mfs_settle parent name txn entry [sid]: if the intent is still there, the source entry becomes
 * that; '' for gone, a whiteout for what is made of it, '=' for what it is without the intent.
 * (What it is, only this partition knows: a rename that begins again, with the same transaction,
 * may find another inode under the name.) 1 if the entry is that now, and leased to the session;
 * else 0. */
int mfs_command_settle(const struct mfs_request *r)
{
    struct mfs_span becomes = mfs_request_arg(r, SETTLE_ENTRY);
    bool leased = false;
    struct mfs_slot slot;

    if (!mfs_txn_is(r, SETTLE_TXN) || (becomes.n > 1 && becomes.n < MFS_ENTRY_LEN))
        return mfs_request_fail(r, EINVAL, "not a transaction and an entry");
    slot = mfs_slot_read(r->ctx, mfs_request_arg(r, FROM), r->argv[NAME]);
    settle(r, slot.entry);
    mfs_slot_fini(&slot);
    mfs_txn_unnote(r, SETTLE_TXN);
    if (mfs_request_arg(r, SETTLE_SID).n)
        leased = lease_settled(r);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_redis.ReplyWithLongLong(r->ctx, leased);
}
