/* rename. Within one partition it is one function there; across, an intent in the source entry, the
 * commit at the target's partition, and the source entry following it. A directory that changes its
 * parent takes the lock on moves; a directory that is replaced is sealed first, as for rmdir. */
#include "meta/ops/rename.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/coherence/leases.h"
#include "meta/coherence/revoke.h"
#include "meta/deferred/deferred.h"
#include "meta/deferred/unknown_outcomes.h"
#include "meta/ops/ops.h"
#include "meta/session/session.h"
#include "meta/session/unregistered_opens.h"
#include "meta/txn/txn.h"
#include "partition/protocol.h"

/* --- what the partitions are told --------------------------------------------------------------
 */

/* Empty unless the lock or a seal is held: a file's rename leaves nothing to do but its entry. */
static int todo_bytes(const struct mfs_rename *r, char **bytes, size_t *n)
{
    struct mfs_todo todo;

    *bytes = NULL;
    *n = 0;
    if (!r->generation && !r->sealed.ino)
        return 0;
    todo = mfs_rename_todo(r);
    *bytes = mfs_todo_encode(&todo, n);
    return *bytes ? 0 : -ENOMEM;
}

/* Reads { status, … } of mfs_rename and mfs_rename_commit, or mfs_rename_begin; a status, or
 * -errno. */
static int take_answer(struct mfs_rename *r, const struct mfs_call *c, bool begin)
{
    int status = (int)mfs_reply_int(mfs_reply_at(c->cmd.reply, 0));
    struct mfs_bytes source = mfs_reply_bytes(mfs_reply_at(c->cmd.reply, 1));
    struct mfs_bytes target = mfs_reply_bytes(mfs_reply_at(c->cmd.reply, 2));
    int rc = 0;

    if (!mfs_reply_count(c->cmd.reply))
        return -EIO;
    if (status == MFS_ANSWER_DONE || status == MFS_ANSWER_NEEDS_LOCK) {
        rc = mfs_entry_decode(source.p, source.n, &r->from.entry);
        if (!begin)
            memset(&r->to.entry, 0, sizeof r->to.entry);
        if (!rc && !begin && target.n)
            rc = mfs_entry_decode(target.p, target.n, &r->to.entry);
    } else if (status == MFS_ANSWER_NEEDS_SEAL) {
        memset(&r->to.entry, 0, sizeof r->to.entry);
        if (source.n)
            rc = mfs_entry_decode(source.p, source.n, &r->to.entry);
    }
    return rc ? rc : status;
}

/* A call that decides, and what it points to; and the source's new ctime, if its home is a third
 * partition. */
struct decision {
    struct mfs_calls calls;
    size_t at;               /* of it */
    struct mfs_settle *left; /* under the new name, by an earlier rename: goes first, or NULL */
    struct mfs_ino_arg from, to, sealed, sid, left_dir;
    char here[2], entry[MFS_ENTRY_LEN];
    struct mfs_rename_ctime ctime;
    uint64_t ctime_of; /* 0: it is not told */
};

/* The end of mfs_rename and of mfs_rename_commit, which say the same of the place that the entry
 * goes to. What else the call has is for the caller to add first. */
static int call_target(struct mfs_rename *r, struct decision *d, bool commit)
{
    struct mfs_call *c = &d->calls.call[d->at];
    char *todo;
    size_t todo_len;
    int rc = todo_bytes(r, &todo, &todo_len);

    if (rc)
        return rc;
    d->sealed = mfs_ino_arg(r->sealed.ino);
    mfs_part_arg(r->to.part, d->here);
    mfs_args_bin(&c->args, d->here, sizeof d->here);
    mfs_args_bin(&c->args, r->time.b, sizeof r->time.b);
    mfs_args_int(&c->args, r->meta->stripe_size);
    mfs_args_int(&c->args, r->flags);
    mfs_args_bin(&c->args, r->txn, sizeof r->txn);
    if (commit)
        mfs_args_str(&c->args, r->from.dir == r->to.dir ? "1" : "0");
    mfs_args_bin(&c->args, r->checked, r->has_checked ? sizeof r->checked : 0);
    mfs_args_bin(&c->args, d->sealed.b, r->sealed.ino ? sizeof d->sealed.b : 0);
    mfs_args_bin(&c->args, todo, todo_len);
    mfs_lease_arg(r->meta, c, &d->sid);
    mfs_args_bin(&c->args, r->unref_txn, sizeof r->unref_txn);
    mfs_args_bin(&c->args, r->whiteout, r->whites ? sizeof r->whiteout : 0);
    if (d->ctime_of)
        mfs_rename_add_ctime(r, &d->calls, d->ctime_of, &d->ctime);
    mfs_calls_run(r->meta, &d->calls);
    rc = c->cmd.rc;
    free(todo);
    return rc ? rc : take_answer(r, c, false);
}

static int call_local(struct mfs_rename *r, struct decision *d)
{
    struct mfs_call *c = &d->calls.call[d->at];

    d->from = mfs_ino_arg(r->from.dir);
    d->to = mfs_ino_arg(r->to.dir);
    mfs_args_bin(&c->args, d->from.b, sizeof d->from.b);
    mfs_args_str(&c->args, r->from.name);
    mfs_args_bin(&c->args, d->to.b, sizeof d->to.b);
    mfs_args_str(&c->args, r->to.name);
    return call_target(r, d, false);
}

static int call_commit(struct mfs_rename *r, struct decision *d)
{
    struct mfs_call *c = &d->calls.call[d->at];

    d->to = mfs_ino_arg(r->to.dir);
    mfs_entry_encode(r->from.entry.ino, r->from.entry.type, d->entry);
    mfs_args_bin(&c->args, d->to.b, sizeof d->to.b);
    mfs_args_str(&c->args, r->to.name);
    mfs_args_bin(&c->args, d->entry, sizeof d->entry);
    return call_target(r, d, true);
}

/* The file whose ctime is told to its home along with the decision: neither partition of the two
 * names will do it. Of a rename within one partition it is what this client knows of the name. */
static uint64_t told_along(const struct mfs_rename *r)
{
    const struct mfs_entry *e = &r->from.entry;
    struct mfs_attr attr;
    uint32_t home;

    if (r->from.part == r->to.part)
        return mfs_leases_name(r->meta, r->from.dir, r->from.name, &attr) &&
                       mfs_placement_home(attr.ino) != r->to.part
                   ? attr.ino
                   : 0;
    home = mfs_placement_home(e->ino);
    return !S_ISDIR(e->type) && home != r->to.part && home != r->from.part ? e->ino : 0;
}

/* The commands that leave a whiteout are refused when memory is full, the others never. */
static int decide(struct mfs_rename *r, struct decision *d)
{
    bool across = r->from.part != r->to.part;
    const char *command = across ? "mfs_rename_commit" : "mfs_rename";
    struct mfs_call *c;
    int rc;

    if (r->whites)
        command = across ? "mfs_rename_commit_leaving" : "mfs_rename_leaving";
    d->calls.n = 0;
    d->ctime_of = told_along(r);
    d->left = mfs_settles_take(r->meta, r->to.dir, r->to.name);
    if (d->left)
        mfs_settles_call(&d->calls, d->left, &d->left_dir);
    d->at = d->calls.n;
    c = mfs_calls_add(&d->calls, command, r->to.part);
    c->cmd.full_at_once = true;
    c->cmd.not_after = r->not_after;
    rc = across ? call_commit(r, d) : call_local(r, d);
    mfs_settles_called(r->meta, d->left, &d->calls.call[0]);
    return rc;
}

static int begin_met(struct mfs_rename *r, const struct mfs_call *c)
{
    struct mfs_bytes text = mfs_reply_bytes(mfs_reply_at(c->cmd.reply, 2));
    struct mfs_entry e;
    int rc = mfs_entry_decode(text.p, text.n, &e);

    if (!rc)
        rc = mfs_intent_clear(r->meta, r->from.dir, r->from.name, &e, &r->backoff);
    return rc ? rc : -EAGAIN;
}

/* *c holds what the answer has. */
static int call_begin(struct mfs_rename *r, struct mfs_call *c)
{
    struct mfs_ino_arg from = mfs_ino_arg(r->from.dir), sid;
    char decider[2], here[2];
    int rc;

    mfs_part_arg(r->to.part, decider);
    mfs_part_arg(r->from.part, here);
    mfs_call_command(c, r->whites ? "mfs_rename_begin_leaving" : "mfs_rename_begin");
    c->cmd.full_at_once = true;
    mfs_args_bin(&c->args, from.b, sizeof from.b);
    mfs_args_str(&c->args, r->from.name);
    mfs_args_bin(&c->args, r->txn, sizeof r->txn);
    mfs_args_bin(&c->args, decider, sizeof decider);
    mfs_args_str(&c->args, r->from.dir == r->to.dir ? "1" : "0");
    mfs_args_bin(&c->args, r->checked, r->has_checked ? sizeof r->checked : 0);
    mfs_args_bin(&c->args, here, sizeof here);
    mfs_args_bin(&c->args, r->time.b, sizeof r->time.b);
    mfs_lease_arg(r->meta, c, &sid);
    rc = mfs_call_run(r->meta, c, r->from.part);
    if (!rc)
        rc = take_answer(r, c, true);
    if (rc == MFS_ANSWER_INTENT)
        return begin_met(r, c);
    if (rc != MFS_ANSWER_DONE)
        return rc;
    r->holders[0][MFS_RENAME_ENTRY] = mfs_reply_bytes(mfs_reply_at(c->cmd.reply, 2));
    r->record = mfs_reply_bytes(mfs_reply_at(c->cmd.reply, 3));
    r->ctime_set =
        !mfs_place_is_dir(&r->from) && mfs_placement_home(r->from.entry.ino) == r->from.part;
    return 0;
}

/* --- what stands in the way ---------------------------------------------------------------------
 */

static int met_intent(struct mfs_rename *r, const struct mfs_call *c)
{
    struct mfs_bytes text = mfs_reply_bytes(mfs_reply_at(c->cmd.reply, 2));
    bool source = mfs_reply_int(mfs_reply_at(c->cmd.reply, 1)) == 1;
    struct mfs_place *p = source ? &r->from : &r->to;
    struct mfs_entry e;
    int rc = mfs_entry_decode(text.p, text.n, &e);

    if (!rc)
        rc = mfs_intent_clear(r->meta, p->dir, p->name, &e, &r->backoff);
    return rc;
}

/* The lock on moves; then the check that no directory becomes its own ancestor. Only inodes that
 * were checked can be moved in the next attempt. */
static int take_lock(struct mfs_rename *r)
{
    uint64_t moved = mfs_place_is_dir(&r->from) ? r->from.entry.ino : 0;
    uint64_t other = mfs_rename_exchanges(r) && mfs_place_is_dir(&r->to) ? r->to.entry.ino : 0;
    int rc = 0;

    if (!r->generation)
        rc = mfs_move_lock(r->meta, r->txn, r->to.part, &r->generation);
    if (!rc && moved)
        rc = mfs_move_check(r->meta, r->to.dir, moved);
    if (!rc && other)
        rc = mfs_move_check(r->meta, r->from.dir, other);
    mfs_put_be64(r->checked, moved);
    mfs_put_be64(r->checked + 8, other);
    r->has_checked = !rc;
    return rc;
}

static int take_seal(struct mfs_rename *r)
{
    int rc;

    mfs_seal_undo(r->meta, &r->sealed);
    if (!mfs_place_is_dir(&r->to) || mfs_rename_exchanges(r))
        return 0;
    r->sealed.ino = r->to.entry.ino;
    memcpy(r->sealed.seal, r->txn, MFS_TXN_LEN);
    mfs_part_arg(r->to.part, r->sealed.seal + MFS_TXN_LEN);
    rc = mfs_seal_all(r->meta, &r->sealed, false);
    if (rc == -ESTALE)
        return 0; /* it went meanwhile: the next attempt will see */
    if (rc == -ENOTEMPTY) {
        struct mfs_attr attr;
        int source = mfs_meta_lookup(r->meta, r->from.dir, r->from.name, &attr);

        rc = source ? source : rc; /* what fills it may be what was to be moved */
    }
    return rc;
}

/* Does what the status asks for. 0: the rename can be tried again. */
static int overcome(struct mfs_rename *r, int status, const struct mfs_call *c)
{
    switch (status) {
    case MFS_ANSWER_INTENT:
        return met_intent(r, c);
    case MFS_ANSWER_SEALED:
        return mfs_seal_met(r->meta, r->to.dir, r->to.part,
                            mfs_reply_bytes(mfs_reply_at(c->cmd.reply, 1)), &r->backoff);
    case MFS_ANSWER_NEEDS_LOCK:
        return take_lock(r);
    case MFS_ANSWER_NEEDS_SEAL:
        return take_seal(r);
    default:
        return -EIO;
    }
}

/* --- attempts -----------------------------------------------------------------------------------
 */

static void release(struct mfs_rename *r)
{
    mfs_seal_undo(r->meta, &r->sealed);
    if (r->generation)
        mfs_move_unlock(r->meta, r->txn);
    r->generation = 0;
    r->has_checked = false;
}

/* The file has not been renamed, but its home has set its ctime already. */
static void tell_ctime(struct mfs_rename *r, uint64_t ino)
{
    mfs_outcomes_attributes(r->meta, ino, mfs_outcomes_notify(r->meta, ino, S_IFREG, r->from.part));
}

/* It has happened. What the home of the source has answered besides may be of another file, if the
 * name was another one's by then. */
static void take_done(struct mfs_rename *r, const struct decision *d)
{
    const struct mfs_reply *reply = d->calls.call[d->at].cmd.reply;
    struct mfs_bytes record = mfs_reply_bytes(mfs_reply_at(reply, 7));

    for (size_t i = 0; i < 2; i++)
        r->holders[i][MFS_RENAME_DECIDER] = mfs_reply_bytes(mfs_reply_at(reply, 4 + i));
    if (record.n)
        r->record = record;
    r->leased = mfs_reply_int(mfs_reply_at(reply, 8)) == 1;
    if (d->ctime_of && d->ctime_of == r->from.entry.ino)
        r->ctime_set = mfs_rename_take_ctime(&d->calls.call[d->at + 1], &r->record,
                                             &r->holders[0][MFS_RENAME_HOME]);
    else if (d->ctime_of)
        tell_ctime(r, d->ctime_of);
    mfs_leases_name_added(r->meta, r->to.dir, r->to.part, mfs_reply_bytes(mfs_reply_at(reply, 6)));
}

/* It has not happened, but the file has another ctime by now. */
static void take_not_done(struct mfs_rename *r, const struct decision *d)
{
    if (d->ctime_of)
        tell_ctime(r, d->ctime_of);
    if (r->ctime_set && S_ISREG(r->from.entry.type))
        tell_ctime(r, r->from.entry.ino);
}

static int finish(struct mfs_rename *r, struct decision *d, int rc)
{
    const struct mfs_call *c = &d->calls.call[d->at];
    struct mfs_bytes status = mfs_reply_bytes(mfs_reply_at(c->cmd.reply, 3));
    bool same = status.n == 4 && !memcmp(status.p, "same", 4);

    if (rc == MFS_ANSWER_DONE && !same) {
        r->moved = true;
        take_done(r, d);
        mfs_rename_conclude(r, status);
        return 0;
    }
    if (mfs_outcome_is_unknown(rc))
        return rc;
    if (r->from.part != r->to.part)
        mfs_intent_undo(r->meta, r->from.dir, r->from.name, r->txn);
    take_not_done(r, d);
    if (rc > 0) {
        rc = overcome(r, rc, c);
        rc = rc ? rc : -EAGAIN;
    }
    return rc;
}

static int attempt(struct mfs_rename *r)
{
    struct mfs_call begin = {0};
    struct decision d;
    int rc = 0;

    r->asked = mfs_clock_mono();
    memset(r->holders, 0, sizeof r->holders);
    r->record = (struct mfs_bytes){NULL, 0};
    r->ctime_set = r->leased = r->moved = false;
    if (r->from.part != r->to.part)
        rc = call_begin(r, &begin);
    if (rc == MFS_ANSWER_NEEDS_LOCK) {
        rc = take_lock(r);
        rc = rc ? rc : -EAGAIN;
    } else if (rc > 0) {
        rc = -EIO; /* no other answer is to be had here */
    } else if (!rc) {
        rc = finish(r, &d, decide(r, &d));
        mfs_calls_fini(&d.calls);
    }
    mfs_call_fini(&begin);
    return rc;
}

/* Until it is done or refused. A transaction that others ended, or may have ended so long ago that
 * they have forgotten it, is begun anew, with nothing held. */
static int run(struct mfs_rename *r)
{
    struct mfs_backoff room = {0};
    int rc;

    do {
        r->not_after = mfs_not_after(r->meta);
        rc = mfs_meta_spread(r->meta, r->to.dir, r->to.part);
        if (!rc) {
            mfs_shards_adding(r->meta->shards, r->to.dir, r->to.part, r->to.name);
            rc = attempt(r);
            mfs_shards_added(r->meta->shards, r->to.dir, r->to.part, r->to.name, MFS_KEEPER_NOT, 0);
        }
        if (!rc && r->moved && !r->whites && !mfs_rename_exchanges(r))
            mfs_shards_removed(r->meta->shards, r->from.dir, r->from.part, r->from.name, r->asked);
        if (rc == -ECANCELED) {
            release(r);
            rc = mfs_random(r->txn, sizeof r->txn);
            rc = rc ? rc : -EAGAIN;
        }
    } while (rc == -EAGAIN || (rc == -ENOSPC && r->whites && mfs_room_wait(r->meta, &room)));
    if (mfs_outcome_is_unknown(rc))
        mfs_outcomes_rename(r); /* what is held stays, for the next client that meets it */
    else
        release(r);
    mfs_seal_done(&r->sealed);
    return rc;
}

static int check_name(const char *name, unsigned flags)
{
    if (strlen(name) > MFS_NAME_LEN_MAX)
        return -ENAMETOOLONG;
    if (!*name)
        return -ENOENT;
    if (!strcmp(name, ".") || !strcmp(name, ".."))
        return flags & RENAME_NOREPLACE ? -EEXIST : -EBUSY;
    return 0;
}

static int start(struct mfs_rename *r)
{
    const struct mfs_place *from = &r->from, *to = &r->to;
    struct mfs_attr attr;
    int rc = check_name(from->name, 0);

    if (!rc)
        rc = check_name(to->name, r->flags);
    if (!rc)
        rc = mfs_random(r->txn, sizeof r->txn);
    if (!rc)
        rc = mfs_random(r->unref_txn, sizeof r->unref_txn);
    if (rc)
        return rc;
    if (from->dir == to->dir && !strcmp(from->name, to->name)) {
        rc = mfs_meta_lookup(r->meta, from->dir, from->name, &attr);
        return !rc && r->flags == RENAME_NOREPLACE ? -EEXIST : rc;
    }
    mfs_unregistered_removing(r->meta->unregistered);
    rc = mfs_unregistered_register(r->meta->unregistered, to->part);
    if (!rc)
        rc = run(r);
    mfs_unregistered_removed(r->meta->unregistered);
    return rc;
}

static struct mfs_place place_of(const struct mfs_meta *meta, uint64_t dir, const char *name)
{
    return (struct mfs_place){
        .dir = dir,
        .name = name,
        .part = mfs_placement_entry(dir, name, strlen(name), meta->nparts),
    };
}

static struct mfs_rename rename_of(struct mfs_meta *meta, struct mfs_place from,
                                   struct mfs_place to, unsigned flags)
{
    struct timespec now = mfs_clock_real();

    return (struct mfs_rename){
        .meta = meta,
        .from = from,
        .to = to,
        .flags = flags,
        .now = now,
        .time = mfs_time_arg(now),
        .begun = mfs_clock_mono(),
    };
}

int mfs_meta_rename(struct mfs_meta *meta, uint64_t parent, const char *name, uint64_t new_parent,
                    const char *new_name, unsigned flags)
{
    struct mfs_rename r =
        rename_of(meta, place_of(meta, parent, name), place_of(meta, new_parent, new_name), flags);

    if (flags && flags != RENAME_NOREPLACE && flags != RENAME_EXCHANGE)
        return -EINVAL;
    return start(&r);
}

int mfs_meta_rename_leaving(struct mfs_meta *meta, uint64_t parent, const char *name,
                            uint64_t new_parent, const char *new_name, unsigned flags,
                            const struct mfs_new *whiteout)
{
    struct mfs_rename r =
        rename_of(meta, place_of(meta, parent, name), place_of(meta, new_parent, new_name), flags);
    const struct mfs_attr attr = {
        .mode = whiteout->mode,
        .uid = whiteout->uid,
        .gid = whiteout->gid,
        .rdev = whiteout->rdev,
        .nlink = 1,
        .version = 1,
        .atime = r.now,
        .mtime = r.now,
        .ctime = r.now,
    };

    if (flags && flags != RENAME_NOREPLACE)
        return -EINVAL;
    r.whites = true;
    mfs_part_arg(r.from.part, r.whiteout);
    mfs_meta_record_encode(&attr, r.whiteout + 2);
    return start(&r);
}
