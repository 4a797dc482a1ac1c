/* Names for inodes that are there, inodes without a name, and names without an inode. */
#include "partition/commands.h"

#include <errno.h>
#include <string.h>

#include "partition/inode.h"
#include "partition/files/leases.h"
#include "partition/names/names.h"
#include "partition/names/shard.h"
#include "partition/names/txn.h"

#define LINK_MAX 65000

/* Adds a name for an inode that counts it already. 0: done, and the other keeper is in *a; else
 * MFS_ANSWER_INTENT or MFS_ANSWER_SEALED, and what belongs to it; or -EEXIST. */
static int put_entry(const struct mfs_request *r, int dir, struct mfs_span entry,
                     struct mfs_span sid, struct mfs_answer *a)
{
    struct mfs_span parent = mfs_request_arg(r, dir);
    struct mfs_slot slot = mfs_slot_read(r->ctx, parent, r->argv[dir + 1]);
    int status = 0;

    if (slot.entry.n > MFS_ENTRY_LEN) {
        status = MFS_ANSWER_INTENT;
        mfs_answer_span(a, slot.entry);
    } else if (slot.entry.p) {
        status = -EEXIST;
    } else if (slot.seal.p) {
        status = MFS_ANSWER_SEALED;
        mfs_answer_span(a, slot.seal);
    } else {
        mfs_shard_set(r->ctx, parent, r->argv[dir + 1], entry.p, entry.n);
        mfs_shard_keeper(r->ctx, parent, sid, a);
    }
    mfs_slot_fini(&slot);
    return status;
}

/* Status, and what belongs to it. */
static int answer(const struct mfs_request *r, int status, struct mfs_answer *what)
{
    struct mfs_answer a = {0};

    if (status >= 0) {
        mfs_answer_byte(&a, (size_t)status);
        mfs_answer_add(&a, what->p, what->n);
    }
    mfs_answer_fini(what);
    return status < 0 ? mfs_request_fail(r, EEXIST, "exists") : mfs_answer_send(&a, r->ctx);
}

/* The session has a lease of a regular file that has got a name, or been counted, here. */
static bool lease(const struct mfs_request *r, int wanted, struct mfs_span ino, unsigned type,
                  struct mfs_span sid)
{
    return type == MFS_TYPE_FILE && mfs_request_arg(r, wanted).n && mfs_lease_add(r->ctx, ino, sid);
}

enum { PUT_PARENT = 1, PUT_NAME, PUT_ENTRY, PUT_SID, PUT_TXN, PUT_LEASE };

/* mfs_put parent name entry sid [txn [lease]]: txn is that of mfs_link_begin, decided by the name's
 * being there. '\0', whether the session has got the lease that it wants, other keeper; '\3' entry;
 * '\4' seal; EEXIST. ECANCELED: another client has decided that it will not be. */
int mfs_command_put(const struct mfs_request *r)
{
    bool txn = mfs_txn_is(r, PUT_TXN);
    struct mfs_span none = {"", 0}, entry = mfs_request_arg(r, PUT_ENTRY);
    struct mfs_span sid = mfs_request_arg(r, PUT_SID);
    struct mfs_answer keeper = {0}, a = {0};
    int status;

    if (!mfs_request_has(r, PUT_ENTRY, MFS_ENTRY_LEN))
        return mfs_request_fail(r, EINVAL, "not an entry");
    if (txn && mfs_txn_is_decided(r, PUT_TXN))
        return mfs_request_fail(r, ECANCELED, "aborted");
    status = put_entry(r, PUT_PARENT, entry, sid, &keeper);
    if (status == MFS_ANSWER_DONE) {
        mfs_answer_byte(&a, lease(r, PUT_LEASE, mfs_entry_ino(entry), mfs_entry_type(entry), sid));
        if (txn)
            mfs_txn_commit(r, PUT_TXN, none, none, MFS_TXN_LIFE_MS);
        mfs_redis.ReplicateVerbatim(r->ctx);
    }
    mfs_answer_add(&a, keeper.p, keeper.n);
    mfs_answer_fini(&keeper);
    return answer(r, status, &a);
}

/* ---- link ------------------------------------------------------------------------------------ */

enum { LINK_INO = 1, LINK_TIME, LINK_SID, LINK_PARENT, LINK_NAME, LINK_LEASE };
enum { BEGIN_TXN = 4, BEGIN_DECIDER };

/* May the inode have one more name? 0 or an errno. */
static int refused(const struct mfs_inode *i)
{
    uint32_t nlink;

    if (!i->rec)
        return ESTALE;
    nlink = mfs_rec_u32(i->rec, MFS_REC_NLINK);
    if (mfs_inode_type(i) == MFS_TYPE_DIR)
        return EPERM;
    if (nlink == 0 && !(i->rec[MFS_REC_FLAGS] & MFS_ATTR_TMPFILE))
        return ENOENT;
    return nlink >= LINK_MAX ? EMLINK : 0;
}

/* '\0', whether the session has got the lease that it wants, length (1 byte) of the other keeper,
 * that, record, other holders of a regular file. */
static void count_name(const struct mfs_request *r, struct mfs_inode *i,
                       const struct mfs_answer *keeper, struct mfs_answer *a)
{
    uint32_t nlink = mfs_rec_u32(i->rec, MFS_REC_NLINK);
    struct mfs_span ino = mfs_request_arg(r, LINK_INO);

    mfs_rec_put_u32(i->rec, MFS_REC_NLINK, nlink + 1);
    memcpy(i->rec + MFS_REC_CTIME, mfs_request_arg(r, LINK_TIME).p, MFS_TIME_LEN);
    mfs_key_changed(i->key);
    if (nlink == 0)
        mfs_inode_orphan(r->ctx, ino, false);
    mfs_answer_byte(a, lease(r, LINK_LEASE, ino, mfs_inode_type(i), mfs_request_arg(r, LINK_SID)));
    mfs_answer_byte(a, keeper->n);
    mfs_answer_add(a, keeper->p, keeper->n);
    mfs_answer_add(a, i->rec, i->n);
    if (mfs_inode_type(i) == MFS_TYPE_FILE)
        mfs_lease_others(r->ctx, ino, mfs_request_arg(r, LINK_SID), false, a);
}

/* The name, if it comes here; as put_entry. */
static int put_name(const struct mfs_request *r, const struct mfs_inode *i, struct mfs_answer *a)
{
    char entry[MFS_ENTRY_LEN];

    memcpy(entry, mfs_request_arg(r, LINK_INO).p, 8);
    entry[8] = (char)mfs_inode_type(i);
    return put_entry(r, LINK_PARENT, (struct mfs_span){entry, sizeof entry},
                     mfs_request_arg(r, LINK_SID), a);
}

/* #intents: this counts a name that is yet to come elsewhere. */
static void note_name(const struct mfs_request *r)
{
    char what[8 + 2 + 8] = {0};

    memcpy(what + 8, mfs_request_arg(r, BEGIN_DECIDER).p, 2);
    memcpy(what + 10, mfs_request_arg(r, LINK_INO).p, 8);
    mfs_txn_note(r, BEGIN_TXN, what, sizeof what);
}

static int add_link(const struct mfs_request *r, struct mfs_inode *i, bool here)
{
    struct mfs_answer met = {0}, a = {0};
    int why = refused(i), status = why || !here ? 0 : put_name(r, i, &met);

    if (why)
        return mfs_request_fail(r, why, "no name can be added");
    if (status)
        return answer(r, status, &met);
    count_name(r, i, &met, &a);
    mfs_answer_fini(&met);
    if (!here)
        note_name(r);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return answer(r, MFS_ANSWER_DONE, &a);
}

static int run_link(const struct mfs_request *r, bool here)
{
    struct mfs_inode i;
    int rc;

    if (!mfs_request_has(r, LINK_TIME, MFS_TIME_LEN))
        return mfs_request_fail(r, EINVAL, "not a time");
    i = mfs_inode_open(r->ctx, mfs_request_arg(r, LINK_INO), MFS_REDIS_WRITE);
    rc = add_link(r, &i, here);
    mfs_inode_close(&i);
    return rc;
}

/* mfs_link ino time sid parent name [lease]: counts one more name and adds it (count_name); '\3',
 * '\4'. */
int mfs_command_link(const struct mfs_request *r)
{
    if (!mfs_request_has(r, LINK_PARENT, 8))
        return mfs_request_fail(r, EINVAL, "not a directory");
    return run_link(r, true);
}

/* mfs_link_begin ino time sid txn decider [lease]: counts one more name, which is yet to come in
 * another partition, and notes that. The same answer. */
int mfs_command_link_begin(const struct mfs_request *r)
{
    if (!mfs_txn_is(r, BEGIN_TXN) || !mfs_request_has(r, BEGIN_DECIDER, 2))
        return mfs_request_fail(r, EINVAL, "not a transaction");
    return run_link(r, false);
}

/* ---- one without the other ------------------------------------------------------------------- */

/* mfs_tmpfile here sid record [xattr value …]: a file of no name, open for the session; its ino. It
 * goes as one whose last name has gone. */
int mfs_command_tmpfile(const struct mfs_request *r)
{
    struct mfs_span record = mfs_request_arg(r, 3);
    char ino[8];
    struct mfs_span id = {ino, sizeof ino};

    if (record.n < MFS_RECORD_FIXED)
        return mfs_request_fail(r, EINVAL, "not a new inode");
    if (!mfs_names_make(r, mfs_request_arg(r, 1), record, 4, ino))
        return mfs_request_fail(r, ENOSPC, "no inode numbers left");
    if (mfs_request_arg(r, 2).n)
        mfs_inode_opened(r->ctx, id, r->argv[2], 1);
    mfs_inode_orphan(r->ctx, id, true);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_redis.ReplyWithStringBuffer(r->ctx, ino, sizeof ino);
}

/* mfs_drop_entry parent name ino: removes an entry whose inode is gone for good. */
int mfs_command_drop_entry(const struct mfs_request *r)
{
    struct mfs_span parent = mfs_request_arg(r, 1);
    struct mfs_slot slot = mfs_slot_read(r->ctx, parent, r->argv[2]);

    if (slot.entry.n >= 8 && mfs_request_has(r, 3, 8) &&
        !memcmp(slot.entry.p, mfs_request_arg(r, 3).p, 8)) {
        mfs_shard_drop(r->ctx, parent, r->argv[2]);
        mfs_redis.ReplicateVerbatim(r->ctx);
    }
    mfs_slot_fini(&slot);
    return mfs_redis.ReplyWithNull(r->ctx);
}
