/* rmdir: the directory is sealed, empty, everywhere; then the name goes (the moment that counts),
 * then the inode. docs/design/metadata.md has the states between. */
#include "meta/deferred/unknown_outcomes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "meta/call.h"
#include "meta/coherence/revoke.h"
#include "meta/deferred/deferred.h"
#include "meta/ops/ops.h"
#include "meta/session/session.h"
#include "meta/txn/txn.h"
#include "partition/protocol.h"

struct removal {
    struct mfs_meta *meta;
    uint64_t parent;
    const char *name;
    uint32_t part;
    char txn[MFS_TXN_LEN];
    struct timespec now;
    struct mfs_sealed sealed;
    struct mfs_backoff backoff;
    int64_t not_after; /* of this attempt */
};

/* The parent counts one directory less. */
static void parent_call(struct removal *r, struct mfs_calls *b, const struct mfs_ino_arg *dir,
                        const struct mfs_time_arg *time)
{
    struct mfs_call *c = mfs_calls_add(b, "mfs_nlink", mfs_placement_home(r->parent));

    mfs_args_bin(&c->args, dir->b, sizeof dir->b);
    mfs_args_int(&c->args, -1);
    mfs_args_bin(&c->args, time->b, sizeof time->b);
    mfs_args_int(&c->args, mfs_parents_seen(r->meta, r->parent));
}

static void take_parent(struct removal *r, struct mfs_call *c, int64_t asked)
{
    if (!c->cmd.rc && mfs_call_text(c).p)
        mfs_meta_counted(r->meta, r->parent, mfs_call_text(c), asked);
}

/* No client shows its name any more, nor its attributes to a program that has it open. */
static void revoke(struct removal *r, uint64_t ino)
{
    uint32_t home = mfs_placement_home(ino);
    struct mfs_lease_change changes[] = {{ino, r->part, true}, {ino, home, true}};

    mfs_leases_revoke(r->meta, changes, home == r->part ? 1 : 2, NULL);
}

/* The directory is gone, as are its inode and the name, by one step, which gave the holders of
 * leases back. The parent counts it out meanwhile. */
static void finish_here(struct removal *r, uint64_t ino, struct mfs_bytes holders)
{
    struct mfs_ino_arg dir = mfs_ino_arg(r->parent);
    struct mfs_time_arg time = mfs_time_arg(r->now);
    int64_t asked = mfs_clock_mono();
    struct mfs_calls b;

    b.n = 0;
    mfs_leases_removed(r->meta, ino, holders);
    parent_call(r, &b, &dir, &time);
    mfs_calls_run(r->meta, &b);
    take_parent(r, &b.call[0], asked);
    mfs_calls_fini(&b);
    mfs_meta_settle(r->meta, ino);
}

/* Its name is gone, its inode goes now. Nothing of this can fail the rmdir: what is left undone is
 * housekeeping's. Who holds leases is known when the inode has gone: another client may have asked
 * for its attributes until then. */
static void finish(struct removal *r, uint64_t ino, const struct mfs_todo *todo)
{
    struct mfs_ino_arg dir = mfs_ino_arg(r->parent);
    struct mfs_time_arg time = mfs_time_arg(r->now);
    int64_t asked = mfs_clock_mono();
    struct mfs_call *kill;
    struct mfs_calls b;

    b.n = 0;
    parent_call(r, &b, &dir, &time);
    mfs_todo_run(r->meta, todo, r->txn, (struct mfs_bytes){0}, r->part, &b);
    take_parent(r, &b.call[0], asked);
    kill = &b.call[b.n - 1];
    if (mfs_placement_home(ino) == r->part && !kill->cmd.rc && mfs_call_text(kill).p) {
        mfs_leases_removed(r->meta, ino, mfs_call_text(kill));
        mfs_meta_settle(r->meta, ino);
    } else {
        revoke(r, ino);
    }
    mfs_calls_fini(&b);
}

/* An intent in the answer's rest: a rename of the directory is under way. */
static int met_intent(struct removal *r, struct mfs_bytes bytes)
{
    struct mfs_entry e;
    int rc = mfs_entry_decode(bytes.p, bytes.n, &e);

    if (!rc)
        rc = mfs_intent_clear(r->meta, r->parent, r->name, &e, &r->backoff);
    return rc ? rc : -EAGAIN;
}

/* First step's answer: 0: all done; 1: sealed at home; 2: nothing is sealed yet; -EAGAIN. */
static int begin_answer(struct removal *r, struct mfs_bytes text)
{
    struct mfs_bytes rest;
    uint64_t ino;
    int rc;

    if (!text.p || text.n < 9)
        return -EIO;
    rest = (struct mfs_bytes){text.p + 1, text.n - 1};
    if (text.p[0] == MFS_ANSWER_INTENT)
        return met_intent(r, rest);
    ino = mfs_get_be64(rest.p);
    rest = (struct mfs_bytes){rest.p + 8, rest.n - 8};
    switch (text.p[0]) {
    case MFS_ANSWER_DONE:
        finish_here(r, ino, rest);
        return 0;
    case MFS_ANSWER_ELSEWHERE:
        r->sealed.ino = ino;
        return 2;
    case MFS_ANSWER_SEALED:
        rc = mfs_seal_met(r->meta, ino, r->part, rest, &r->backoff);
        return rc ? rc : -EAGAIN;
    case MFS_ANSWER_LEFTOVER:
        rc = mfs_leftover_met(r->meta, ino, rest, &r->backoff);
        return rc ? rc : -EAGAIN;
    case MFS_ANSWER_SPREAD:
        r->sealed.ino = ino;
        rc = mfs_seal_bits(&r->sealed, rest);
        return rc ? rc : 1;
    default:
        return -EIO;
    }
}

static int begin(struct removal *r)
{
    struct mfs_ino_arg dir = mfs_ino_arg(r->parent);
    struct mfs_time_arg time = mfs_time_arg(r->now);
    struct mfs_call c;
    char prefix[2];
    int rc;

    rc = mfs_random(r->txn, sizeof r->txn);
    if (rc)
        return rc;
    memcpy(r->sealed.seal, r->txn, MFS_TXN_LEN);
    mfs_part_arg(r->part, r->sealed.seal + MFS_TXN_LEN);
    mfs_part_arg(r->part, prefix);
    mfs_call_command(&c, "mfs_rmdir");
    mfs_args_bin(&c.args, dir.b, sizeof dir.b);
    mfs_args_str(&c.args, r->name);
    mfs_args_bin(&c.args, prefix, sizeof prefix);
    mfs_args_bin(&c.args, r->sealed.seal, sizeof r->sealed.seal);
    mfs_args_bin(&c.args, time.b, sizeof time.b);
    rc = mfs_call_run(r->meta, &c, r->part);
    if (!rc)
        rc = begin_answer(r, mfs_call_text(&c));
    mfs_call_fini(&c);
    return rc;
}

/* The name goes. 0; -EAGAIN: another client was in the way, ended us, or took the name. */
static int commit(struct removal *r, const char *todo, size_t todo_len)
{
    struct mfs_ino_arg dir = mfs_ino_arg(r->parent), ino = mfs_ino_arg(r->sealed.ino);
    struct mfs_bytes text;
    struct mfs_call c;
    int rc;

    mfs_call_command(&c, "mfs_rmdir_commit");
    c.cmd.not_after = r->not_after;
    mfs_args_bin(&c.args, dir.b, sizeof dir.b);
    mfs_args_str(&c.args, r->name);
    mfs_args_bin(&c.args, ino.b, sizeof ino.b);
    mfs_args_bin(&c.args, r->txn, sizeof r->txn);
    mfs_args_bin(&c.args, todo, todo_len);
    rc = mfs_call_run(r->meta, &c, r->part);
    text = mfs_call_text(&c);
    if (rc == -ECANCELED || rc == -ENOENT)
        rc = -EAGAIN; /* the name may mean something else by now: look again */
    else if (!rc && (!text.p || !text.n))
        rc = -EIO;
    else if (!rc && text.p[0] == MFS_ANSWER_INTENT)
        rc = met_intent(r, (struct mfs_bytes){text.p + 1, text.n - 1});
    mfs_call_fini(&c);
    return rc;
}

/* The inode went while we were at it: another rmdir, or a rename that put something else there. A
 * look-up also clears away a name that leads nowhere. */
static int look_again(struct removal *r)
{
    struct mfs_attr attr;
    int rc = mfs_meta_lookup(r->meta, r->parent, r->name, &attr);

    return rc ? rc : -EAGAIN;
}

static int attempt(struct removal *r)
{
    struct mfs_todo todo = {.time = mfs_time_arg(r->now)};
    size_t len = 0;
    char *bytes;
    int rc;

    r->not_after = mfs_not_after(r->meta);
    rc = begin(r);
    if (rc <= 0)
        return rc;
    rc = mfs_seal_all(r->meta, &r->sealed, rc == 1);
    if (rc)
        return rc == -ESTALE ? look_again(r) : rc;
    todo.dead = r->sealed.ino;
    todo.bits = r->sealed.bits;
    todo.nbits = r->sealed.nbits;
    bytes = mfs_todo_encode(&todo, &len);
    rc = bytes ? commit(r, bytes, len) : -ENOMEM;
    free(bytes);
    if (rc) {
        /* After a lost answer it is unknown whether the name is gone; a client that meets the seal
         * finds out. */
        if (!mfs_outcome_is_unknown(rc))
            mfs_seal_undo(r->meta, &r->sealed);
    } else {
        finish(r, r->sealed.ino, &todo);
    }
    mfs_seal_done(&r->sealed);
    return rc;
}

int mfs_meta_rmdir(struct mfs_meta *meta, uint64_t parent, const char *name)
{
    struct removal r = {.meta = meta, .parent = parent, .name = name, .now = mfs_clock_real()};
    size_t len = strlen(name);
    int rc;

    if (len > MFS_NAME_LEN_MAX)
        return -ENAMETOOLONG;
    if (!len)
        return -ENOENT;
    if (!strcmp(name, "."))
        return -EINVAL;
    if (!strcmp(name, ".."))
        return -ENOTEMPTY;
    r.part = mfs_placement_entry(parent, name, len, meta->nparts);
    do {
        rc = attempt(&r);
    } while (rc == -EAGAIN);
    return rc;
}
