/* Names in transition: an entry that carries an intent is the source of a rename whose target is in
 * another partition. That partition knows whether the rename has happened. */
#include "meta/deferred/unknown_outcomes.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "meta/call.h"
#include "meta/deferred/deferred.h"
#include "meta/session/session.h"
#include "meta/txn/txn.h"
#include "partition/protocol.h"

/* T txn at its decider: nil (open), 'A' (aborted), 'C' … (committed, see partition/names/txn.h). */
struct outcome {
    bool committed, aborted;
    struct mfs_bytes becomes, todo;
};

static int read_outcome(struct mfs_bytes text, struct outcome *o)
{
    size_t n;

    memset(o, 0, sizeof *o);
    if (!text.p)
        return 0;
    if (text.n == 1 && text.p[0] == MFS_OUTCOME_ABORTED) {
        o->aborted = true;
        return 0;
    }
    n = text.n >= 2 ? (unsigned char)text.p[1] : 0;
    if (text.n < 2 + n || text.p[0] != MFS_OUTCOME_COMMITTED ||
        (n && n != MFS_ENTRY_LEN && n != MFS_WHITEOUT_LEN))
        return -EIO;
    o->committed = true;
    o->becomes = (struct mfs_bytes){text.p + 2, n};
    o->todo = (struct mfs_bytes){text.p + 2 + n, text.n - 2 - n};
    return 0;
}

/* *c holds what *o points to. */
static int ask_outcome(struct mfs_meta *meta, const char *txn, uint32_t decider, struct mfs_call *c,
                       struct outcome *o)
{
    char key[1 + MFS_TXN_LEN];
    int rc;

    key[0] = 'T';
    memcpy(key + 1, txn, MFS_TXN_LEN);
    mfs_call_command(c, "GET");
    mfs_args_bin(&c->args, key, sizeof key);
    c->cmd.idempotent = true;
    rc = mfs_call_run(meta, c, decider);
    return rc ? rc : read_outcome(mfs_call_text(c), o);
}

static int force_outcome(struct mfs_meta *meta, const char *txn, uint32_t decider,
                         struct mfs_call *c, struct outcome *o)
{
    int rc;

    mfs_call_command(c, "mfs_abort");
    mfs_args_bin(&c->args, txn, MFS_TXN_LEN);
    c->cmd.idempotent = true;
    rc = mfs_call_run(meta, c, decider);
    return rc ? rc : read_outcome(mfs_call_text(c), o);
}

/* 1: the entry has the intent of txn, and is *now; 0: it has not; -errno. */
static int still_there(struct mfs_meta *meta, uint64_t dir, const char *name, const char *txn,
                       struct mfs_entry *now)
{
    char key[MFS_KEY_INO_LEN];
    struct mfs_bytes text;
    struct mfs_call c;
    int rc;

    mfs_key_ino(key, 'D', dir);
    mfs_call_command(&c, "HGET");
    mfs_args_bin(&c.args, key, sizeof key);
    mfs_args_str(&c.args, name);
    c.cmd.idempotent = true;
    rc = mfs_call_run(meta, &c, mfs_placement_entry(dir, name, strlen(name), meta->nparts));
    text = mfs_call_text(&c);
    if (rc >= 0)
        rc = text.p && !mfs_entry_decode(text.p, text.n, now) && now->intent &&
             !memcmp(now->txn, txn, MFS_TXN_LEN);
    mfs_call_fini(&c);
    return rc;
}

/* Takes the intent out of the source entry, which becomes `becomes`: an entry, a whiteout that is
 * made with that, or nothing. */
static int settle(struct mfs_meta *meta, uint64_t dir, const char *name, const char *txn,
                  struct mfs_bytes becomes)
{
    struct mfs_ino_arg key = mfs_ino_arg(dir);
    struct mfs_call c;
    int rc;

    mfs_call_command(&c, "mfs_settle");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_str(&c.args, name);
    mfs_args_bin(&c.args, txn, MFS_TXN_LEN);
    mfs_args_bin(&c.args, becomes.p, becomes.n);
    c.cmd.idempotent = true;
    rc = mfs_call_run(meta, &c, mfs_placement_entry(dir, name, strlen(name), meta->nparts));
    mfs_call_fini(&c);
    return rc;
}

int mfs_intent_undo(struct mfs_meta *meta, uint64_t dir, const char *name, const char *txn)
{
    return settle(meta, dir, name, txn, (struct mfs_bytes){"=", 1});
}

static void forget(struct mfs_meta *meta, const char *txn, uint32_t decider)
{
    struct mfs_call c;

    mfs_call_command(&c, "mfs_forget");
    mfs_args_bin(&c.args, txn, MFS_TXN_LEN);
    mfs_call_post(meta, &c, decider);
}

/* The client that made the rename may have died before it told those that show the old names. Of
 * what it has replaced nothing is known any more. */
static void notify_holders(struct mfs_meta *meta, uint64_t dir, const char *name,
                           const struct mfs_entry *e, const struct outcome *o)
{
    uint32_t part = mfs_placement_entry(dir, name, strlen(name), meta->nparts);
    struct mfs_entry other;

    mfs_outcomes_attributes(meta, e->ino, mfs_outcomes_notify(meta, e->ino, e->type, part));
    if (o->becomes.n && !mfs_entry_decode(o->becomes.p, o->becomes.n, &other))
        mfs_outcomes_attributes(meta, other.ino,
                                mfs_outcomes_notify(meta, other.ino, other.type, e->decider));
}

/* A committed rename of a file is done when its source entry has followed; what a directory's
 * entails besides is in the outcome. */
static int finish(struct mfs_meta *meta, uint64_t dir, const char *name, const struct mfs_entry *e,
                  const struct outcome *o)
{
    struct mfs_todo todo;
    int rc;

    if (o->todo.n) {
        rc = mfs_todo_decode(o->todo.p, o->todo.n, &todo);
        if (!rc)
            rc = mfs_todo_run(meta, &todo, e->txn, o->becomes, e->decider, NULL);
    } else {
        rc = settle(meta, dir, name, e->txn, o->becomes);
        if (!rc)
            forget(meta, e->txn, e->decider);
    }
    if (!rc)
        notify_holders(meta, dir, name, e, o);
    return rc;
}

int mfs_intent_read(struct mfs_meta *meta, uint64_t dir, const char *name, struct mfs_entry *e)
{
    struct outcome o;
    struct mfs_entry now;
    struct mfs_call c;
    int rc;

    if (mfs_settles_has(meta, e->txn)) {
        e->ino = 0;
        return 0;
    }
    rc = ask_outcome(meta, e->txn, e->decider, &c, &o);
    if (rc)
        goto out;
    if (o.committed && o.becomes.n == MFS_WHITEOUT_LEN) {
        /* Which inode it becomes is known when it has become it. */
        rc = finish(meta, dir, name, e, &o);
        rc = rc ? rc : -EAGAIN;
    } else if (o.committed) {
        if (o.becomes.n)
            rc = mfs_entry_decode(o.becomes.p, o.becomes.n, e);
        else
            e->ino = 0;
    } else if (o.aborted) {
        rc = 1;
    } else {
        /* The outcome is forgotten once the entry has followed it: only if the entry has not
         * changed was there none when we asked. */
        rc = still_there(meta, dir, name, e->txn, &now);
        if (rc == 0)
            rc = -EAGAIN;
    }
out:
    mfs_call_fini(&c);
    return rc;
}

int mfs_txn_abort(struct mfs_meta *meta, const char *txn, uint32_t decider)
{
    struct outcome o;
    struct mfs_call c;
    int rc = force_outcome(meta, txn, decider, &c, &o);

    mfs_call_fini(&c);
    return rc ? rc : o.committed;
}

int mfs_intent_end(struct mfs_meta *meta, uint64_t dir, const char *name, const struct mfs_entry *e)
{
    struct outcome o;
    struct mfs_call c;
    int rc = force_outcome(meta, e->txn, e->decider, &c, &o);

    if (!rc && o.committed)
        rc = finish(meta, dir, name, e, &o);
    else if (!rc)
        rc = mfs_intent_undo(meta, dir, name, e->txn);
    mfs_call_fini(&c);
    return rc;
}

int mfs_intent_end_of(struct mfs_meta *meta, uint64_t dir, const char *name, const char *txn)
{
    struct mfs_entry e;
    int rc = still_there(meta, dir, name, txn, &e);

    if (rc < 0)
        return rc;
    if (rc == 0) /* the name went another way; only the note is left */
        return mfs_intent_undo(meta, dir, name, txn);
    mfs_info("meta", "ending a rename of \"%s\" in %" PRIx64 " that was left", name, dir);
    return mfs_intent_end(meta, dir, name, &e);
}

int mfs_intent_clear(struct mfs_meta *meta, uint64_t dir, const char *name,
                     const struct mfs_entry *e, struct mfs_backoff *backoff)
{
    struct outcome o;
    struct mfs_call c;
    int rc;

    if (mfs_settles_has(meta, e->txn)) {
        mfs_settles_now(meta, dir);
        return 0;
    }
    rc = ask_outcome(meta, e->txn, e->decider, &c, &o);
    if (rc)
        goto out;
    if (o.committed) {
        rc = finish(meta, dir, name, e, &o);
    } else if (o.aborted) {
        rc = mfs_intent_undo(meta, dir, name, e->txn);
    } else if (!mfs_backoff_wait(meta, backoff)) {
        mfs_info("meta", "ending a rename of \"%s\" in %" PRIx64 " that got stuck", name, dir);
        rc = mfs_intent_end(meta, dir, name, e);
        *backoff = (struct mfs_backoff){0};
    }
out:
    mfs_call_fini(&c);
    return rc;
}

int mfs_txn_end(struct mfs_meta *meta, const char *txn, uint32_t decider)
{
    struct mfs_todo todo;
    struct outcome o;
    struct mfs_call c;
    int rc = force_outcome(meta, txn, decider, &c, &o);

    if (!rc && o.committed && o.todo.n) {
        rc = mfs_todo_decode(o.todo.p, o.todo.n, &todo);
        if (!rc)
            rc = mfs_todo_run(meta, &todo, txn, o.becomes, decider, NULL);
        if (!rc && todo.moved)
            mfs_outcomes_notify(meta, todo.moved, S_IFDIR, todo.src_part);
        if (!rc && todo.other)
            mfs_outcomes_notify(meta, todo.other, S_IFDIR, decider);
    }
    if (!rc)
        rc = o.committed;
    mfs_call_fini(&c);
    return rc;
}
