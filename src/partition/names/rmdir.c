/* How a directory goes away (docs/design/metadata.md, "rmdir"): its shards are sealed, empty ones
 * only, and then its name goes. Answers begin with a status byte: '\4' seal: another seal is in the
 * way;
 * '\6', the name's length (1 byte), name, entry: a rename away from here may have happened, whose
 * source is all that is left. */
#include "partition/commands.h"

#include <errno.h>
#include <string.h>

#include "partition/inode.h"
#include "partition/files/leases.h"
#include "partition/names/dir.h"
#include "partition/names/shard.h"
#include "partition/names/txn.h"

struct leftover {
    bool names; /* others than sources of renames */
    struct mfs_answer a;
};

static void look(struct RedisModuleKey *key, struct RedisModuleString *field,
                 struct RedisModuleString *value, void *arg)
{
    struct mfs_span name = mfs_string_span(field), entry = mfs_string_span(value);
    struct leftover *l = arg;

    (void)key;
    if (!name.n || l->names)
        return;
    l->names |= entry.n <= MFS_ENTRY_LEN || name.n > UINT8_MAX;
    l->a.n = 0;
    mfs_answer_byte(&l->a, name.n);
    mfs_answer_span(&l->a, name);
    mfs_answer_span(&l->a, entry);
}

/* Up to the first name: however many names there are, only leftovers cost time. */
static void look_through(struct RedisModuleKey *key, struct leftover *l)
{
    struct RedisModuleScanCursor *cursor = mfs_redis.ScanCursorCreate();

    while (!l->names && mfs_redis.ScanKey(key, cursor, look, l)) {
    }
    mfs_redis.ScanCursorDestroy(cursor);
}

/* What keeps a shard that has a seal, or none, from being empty: 0, nothing; MFS_ANSWER_LEFTOVER,
 * which is in *a; or -ENOTEMPTY. */
static int occupied(struct RedisModuleCtx *ctx, struct mfs_span ino, bool sealed,
                    struct mfs_answer *a)
{
    struct RedisModuleKey *key = mfs_key_open(ctx, 'D', ino, MFS_REDIS_READ);
    size_t fields = key ? mfs_redis.ValueLength(key) : 0, n = fields - (sealed && fields ? 1 : 0);
    struct leftover l = {0};

    if (n)
        look_through(key, &l);
    mfs_key_close(key);
    if (n && !l.names && l.a.n)
        mfs_answer_add(a, l.a.p, l.a.n);
    mfs_answer_fini(&l.a);
    return !n ? 0 : l.names ? -ENOTEMPTY : MFS_ANSWER_LEFTOVER;
}

/* Seals the shard here: MFS_ANSWER_DONE; MFS_ANSWER_SEALED, with that seal in *a; or as occupied.
 */
static int seal_shard(struct RedisModuleCtx *ctx, struct mfs_span ino, struct mfs_span seal,
                      struct mfs_answer *a)
{
    struct RedisModuleString *held = mfs_shard_seal(ctx, ino);
    struct mfs_span have = held ? mfs_string_span(held) : (struct mfs_span){NULL, 0};
    int status;

    if (held && !mfs_span_is(have, seal)) {
        mfs_answer_span(a, have);
        status = MFS_ANSWER_SEALED;
    } else {
        status = occupied(ctx, ino, held != NULL, a);
    }
    if (held)
        mfs_redis.FreeString(ctx, held);
    if (status == 0)
        mfs_shard_set_seal(ctx, ino, seal);
    return status;
}

/* Status, the inode if it is given, and what belongs to the status. */
static int answer(const struct mfs_request *r, int status, const struct mfs_span *ino,
                  struct mfs_answer *what)
{
    struct mfs_answer a = {0};

    if (status < 0) {
        mfs_answer_fini(what);
        return mfs_request_fail(r, ENOTEMPTY, "not empty");
    }
    mfs_answer_byte(&a, (size_t)status);
    if (ino)
        mfs_answer_span(&a, *ino);
    mfs_answer_add(&a, what->p, what->n);
    mfs_answer_fini(what);
    return mfs_answer_send(&a, r->ctx);
}

static int answer_entry(const struct mfs_request *r, enum mfs_answer_status status,
                        struct mfs_span entry)
{
    return answer(r, (int)status, &entry, &(struct mfs_answer){0});
}

/* ---- the first step -------------------------------------------------------------------------- */

enum { PARENT = 1, NAME, HERE, SEAL, TIME }; /* of mfs_rmdir */

/* The shard here is sealed; is the inode to go, too? */
static int remove_sealed(const struct mfs_request *r, struct mfs_span ino, bool spread,
                         struct mfs_answer *record)
{
    const struct mfs_span none = {"", 0};
    struct mfs_answer holders = {0};

    if (spread)
        return answer(r, MFS_ANSWER_SPREAD, &ino, record);
    mfs_answer_fini(record);
    mfs_shard_drop(r->ctx, mfs_request_arg(r, PARENT), r->argv[NAME]);
    mfs_dir_kill(r->ctx, ino, mfs_request_arg(r, TIME));
    mfs_lease_others(r->ctx, ino, none, false, &holders);
    return answer(r, MFS_ANSWER_DONE, &ino, &holders);
}

static int remove_inode(const struct mfs_request *r, struct mfs_span ino)
{
    struct mfs_inode i = mfs_inode_open(r->ctx, ino, MFS_REDIS_READ);
    bool there = i.rec, spread = there && mfs_dir_is_spread(&i, mfs_request_arg(r, HERE));
    struct mfs_answer record = {0}, a = {0};
    int status;

    mfs_answer_add(&record, i.rec, there ? i.n : 0);
    mfs_inode_close(&i);
    if (!there) {
        mfs_answer_fini(&record);
        mfs_shard_drop(r->ctx, mfs_request_arg(r, PARENT), r->argv[NAME]);
        mfs_redis.ReplicateVerbatim(r->ctx);
        return mfs_request_fail(r, ENOENT, "no inode");
    }
    status = seal_shard(r->ctx, ino, mfs_request_arg(r, SEAL), &a);
    if (status != MFS_ANSWER_DONE) {
        mfs_answer_fini(&record);
        return answer(r, status, &ino, &a);
    }
    mfs_redis.ReplicateVerbatim(r->ctx);
    return remove_sealed(r, ino, spread, &record);
}

static int remove_entry(const struct mfs_request *r, struct mfs_span entry)
{
    if (!entry.p)
        return mfs_request_fail(r, ENOENT, "no entry");
    if (!mfs_entry_is(entry))
        return mfs_request_fail(r, EIO, "not an entry");
    if (entry.n > MFS_ENTRY_LEN) /* an exchange may have made it something else */
        return answer_entry(r, MFS_ANSWER_INTENT, entry);
    if (mfs_entry_type(entry) != MFS_TYPE_DIR)
        return mfs_request_fail(r, ENOTDIR, "no directory");
    if (!mfs_inode_is_here(entry, mfs_request_arg(r, HERE)))
        return answer_entry(r, MFS_ANSWER_ELSEWHERE, mfs_entry_ino(entry));
    return remove_inode(r, mfs_entry_ino(entry));
}

/* mfs_rmdir parent name here seal time: the first step of rmdir. '\0' ino holders: removed, as it
 * was empty and never had entries elsewhere, and these sessions have leases of it; '\1' ino: its
 * home is elsewhere; '\5' ino record: sealed here, other shards are to be sealed; '\3' entry; '\4'
 * ino seal; '\6' ino …. */
int mfs_command_rmdir(const struct mfs_request *r)
{
    struct mfs_slot slot;
    int rc;

    if (!mfs_request_has(r, HERE, 2) || !mfs_request_has(r, TIME, MFS_TIME_LEN))
        return mfs_request_fail(r, EINVAL, "not a partition and a time");
    slot = mfs_slot_read(r->ctx, mfs_request_arg(r, PARENT), r->argv[NAME]);
    rc = remove_entry(r, slot.entry);
    mfs_slot_fini(&slot);
    return rc;
}

/* ---- the other shards ------------------------------------------------------------------------ */

/* mfs_seal_home ino seal: as above for a directory whose entry is elsewhere. '\5' record; '\4'
 * seal;
 * '\6' …. */
int mfs_command_seal_home(const struct mfs_request *r)
{
    struct mfs_span ino = mfs_request_arg(r, 1);
    struct mfs_inode i = mfs_inode_open(r->ctx, ino, MFS_REDIS_READ);
    bool there = i.rec && mfs_rec_u32(i.rec, MFS_REC_NLINK);
    struct mfs_answer record = {0}, a = {0};
    int status;

    mfs_answer_add(&record, i.rec, there ? i.n : 0);
    mfs_inode_close(&i);
    if (there)
        status = seal_shard(r->ctx, ino, mfs_request_arg(r, 2), &a);
    if (there && status == MFS_ANSWER_DONE) {
        mfs_redis.ReplicateVerbatim(r->ctx);
        return answer(r, MFS_ANSWER_SPREAD, NULL, &record);
    }
    mfs_answer_fini(&record);
    return there ? answer(r, status, NULL, &a) : mfs_request_fail(r, ESTALE, "no inode");
}

/* mfs_seal ino seal: seals another shard. '\0': done; '\4' seal; '\6' …; ENOTEMPTY. */
int mfs_command_seal(const struct mfs_request *r)
{
    struct mfs_answer a = {0};
    int status = seal_shard(r->ctx, mfs_request_arg(r, 1), mfs_request_arg(r, 2), &a);

    if (status == MFS_ANSWER_DONE)
        mfs_redis.ReplicateVerbatim(r->ctx);
    return answer(r, status, NULL, &a);
}

/* mfs_unseal ino seal: takes just that seal away. */
int mfs_command_unseal(const struct mfs_request *r)
{
    struct mfs_span ino = mfs_request_arg(r, 1), seal = mfs_request_arg(r, 2);
    struct RedisModuleString *held = mfs_shard_seal(r->ctx, ino);

    if (held) {
        if (mfs_span_is(mfs_string_span(held), seal)) {
            mfs_shard_drop_seal(r->ctx, ino);
            mfs_redis.ReplicateVerbatim(r->ctx);
        }
        mfs_redis.FreeString(r->ctx, held);
    }
    return mfs_redis.ReplyWithNull(r->ctx);
}

/* ---- the moment of rmdir --------------------------------------------------------------------- */

enum { COMMIT_INO = 3, COMMIT_TXN, COMMIT_TODO };

static int commit(const struct mfs_request *r, struct mfs_span entry)
{
    struct mfs_span ino = mfs_request_arg(r, COMMIT_INO), none = {"", 0};

    if (mfs_txn_is_decided(r, COMMIT_TXN))
        return mfs_request_fail(r, ECANCELED, "aborted");
    if (!entry.p || !mfs_entry_is(entry) || ino.n != 8 || memcmp(entry.p, ino.p, 8) != 0)
        return mfs_request_fail(r, ENOENT, "no entry");
    if (entry.n > MFS_ENTRY_LEN)
        return answer_entry(r, MFS_ANSWER_INTENT, entry);
    mfs_shard_drop(r->ctx, mfs_request_arg(r, PARENT), r->argv[NAME]);
    mfs_txn_commit(r, COMMIT_TXN, none, mfs_request_arg(r, COMMIT_TODO), 0);
    mfs_txn_note(r, COMMIT_TXN, NULL, 0);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return answer_entry(r, MFS_ANSWER_DONE, none);
}

/* mfs_rmdir_commit parent name ino txn todo: the name goes. '\0'; '\3' entry; ECANCELED when
 * another client aborted it; ENOENT when the name means something else by now. */
int mfs_command_rmdir_commit(const struct mfs_request *r)
{
    struct mfs_slot slot;
    int rc;

    if (!mfs_txn_is(r, COMMIT_TXN))
        return mfs_request_fail(r, EINVAL, "not a transaction");
    slot = mfs_slot_read(r->ctx, mfs_request_arg(r, PARENT), r->argv[NAME]);
    rc = commit(r, slot.entry);
    mfs_slot_fini(&slot);
    return rc;
}
