/* Partitions with a replica: a call that writes returns when the replica has what was written, so
 * that nothing is lost that anybody has been told of when the replica takes over.
 *
 * Behind what a call writes to a partition goes a WAIT, in the same pipeline: it says how many
 * replicas have all that the connection has had executed. So the everyday call costs no round trip
 * more. Where that is not enough, as the pipeline was torn apart (a partition that moves, a lost
 * connection), or the replica is behind, the partition is asked again by itself; the PING before
 * the WAIT makes it answer for all that has been executed so far. When a replica has taken over in
 * between ("era"), what the partition's former process had answered may be lost: that is done again
 * where it may be, and fails where it may not.
 *
 *   sent with WAIT ──┬── which says 1, in the attempt that answered the rest ──> confirmed
 *                    v
 *   answered ──┬── no replica in the table, or WAIT says 1 ──> confirmed
 *              ├── WAIT says 0 ──> asked again (a table may say meanwhile that there is none)
 *              └── another era ──┬── idempotent: sent again ──> answered
 *                                └── -EIO */
#include "store/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "store/args.h"
#include "store/reply.h"

#define WAIT_MS 200 /* that a process waits for its replica before it says how it stands */

struct doubt {
    uint32_t part, era;
    bool pending; /* not confirmed yet */
    size_t ask;   /* where its WAIT is among what is sent */
};

/* A call that writes. */
struct confirmation {
    struct mfs_store *store;
    struct mfs_cmd *cmds; /* its commands */
    size_t n;
    struct doubt *doubts; /* the partitions that it writes to */
    size_t count;
    struct mfs_cmd
        *sent; /* room for the commands and a WAIT for each partition, or two asks each */
    struct mfs_args ping, wait;
};

/* What changes data or names. Sessions' marks (who has what open, and leases) are not waited for:
 * they are renewed, or run out. */
static const char *const writes[] = {
    "SET",  "SETRANGE",   "DEL",        "UNLINK",     "APPEND",      "FCALL",    "HSET",
    "HDEL", "mfs_create", "mfs_unlink", "mfs_commit", "mfs_commit0", "mfs_sput", "mfs_unref"};

static bool is_write(const struct mfs_cmd *cmd)
{
    const struct mfs_arg *word = &cmd->argv[0];

    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++)
        if (strlen(writes[i]) == word->len && !strncasecmp(writes[i], word->p, word->len))
            return true;
    return false;
}

/* The partition's present era; *replica: it has one that is to be waited for. */
static uint32_t era_of(struct mfs_store *store, uint32_t part, bool *replica)
{
    uint32_t era;

    pthread_mutex_lock(&store->lock);
    era = store->table->part[part].era;
    *replica = store->table->part[part].replica;
    pthread_mutex_unlock(&store->lock);
    return era;
}

/* Answered by a process that a replica has replaced? Then it is as if it had not been answered. */
static size_t undo(struct mfs_cmd *cmds, size_t n, uint32_t part, uint32_t era)
{
    size_t again = 0;

    for (size_t i = 0; i < n; i++) {
        struct mfs_cmd *cmd = &cmds[i];

        if (cmd->part != part || cmd->rc || cmd->era == era || !is_write(cmd))
            continue;
        mfs_cmds_fini(cmd, 1);
        cmd->rc = cmd->idempotent ? -EAGAIN : -EIO;
        again += cmd->idempotent;
    }
    return again;
}

static void repeat(struct mfs_store *store, struct mfs_cmd *cmds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (cmds[i].rc == -EAGAIN)
            mfs_exec_once(store, &cmds[i], 1);
}

static void fail(struct mfs_cmd *cmds, size_t n, uint32_t part, int rc)
{
    for (size_t i = 0; i < n; i++) {
        if (cmds[i].part != part || cmds[i].rc || !is_write(&cmds[i]))
            continue;
        mfs_cmds_fini(&cmds[i], 1);
        cmds[i].rc = rc;
    }
}

/* ---- asking by itself ------------------------------------------------------------------------ */

static struct mfs_cmd question(const struct mfs_args *args, uint32_t part)
{
    struct mfs_cmd cmd = mfs_args_cmd(args, part);

    cmd.idempotent = true;
    return cmd;
}

/* Has the partition's replica all that was executed before this WAIT, and before `other`, which
 * went out with it? Sent once more on another connection, a WAIT speaks of nothing. */
static bool says_yes(const struct mfs_cmd *wait, const struct mfs_cmd *other)
{
    return !wait->rc && !other->rc && wait->attempt == other->attempt && wait->era == other->era &&
           mfs_reply_int(wait->reply) > 0;
}

/* Whether the partition is to be asked. */
static bool look(struct confirmation *c, struct doubt *d)
{
    d->era = era_of(c->store, d->part, &d->pending);
    if (!undo(c->cmds, c->n, d->part, d->era))
        return d->pending;
    repeat(c->store, c->cmds, c->n);
    d->pending = true; /* another look, as that may have taken a while */
    return false;
}

static void judge(struct confirmation *c, struct doubt *d, bool last)
{
    const struct mfs_cmd *wait = &c->sent[d->ask], *ping = wait - 1;
    int rc = ping->rc ? ping->rc : wait->rc;

    d->pending = false;
    if (wait->era == d->era && says_yes(wait, ping))
        return;
    if (rc || last)
        fail(c->cmds, c->n, d->part, rc ? rc : -ETIMEDOUT);
    else
        d->pending = true;
}

/* All partitions that are in doubt, side by side. */
static void ask(struct confirmation *c, bool last)
{
    size_t n = 0;

    for (size_t i = 0; i < c->count; i++) {
        struct doubt *d = &c->doubts[i];

        d->ask = 0;
        if (!d->pending || !look(c, d))
            continue;
        c->sent[n++] = question(&c->ping, d->part);
        d->ask = n;
        c->sent[n++] = question(&c->wait, d->part);
    }
    mfs_exec_once(c->store, c->sent, n);
    for (size_t i = 0; i < c->count; i++)
        if (c->doubts[i].ask)
            judge(c, &c->doubts[i], last);
    mfs_cmds_fini(c->sent, n);
}

/* ---- the call -------------------------------------------------------------------------------- */

static void collect(struct confirmation *c)
{
    size_t k;

    for (size_t i = 0; i < c->n; i++) {
        if (!is_write(&c->cmds[i]))
            continue;
        for (k = 0; k < c->count && c->doubts[k].part != c->cmds[i].part; k++)
            ;
        if (k == c->count)
            c->doubts[c->count++] =
                (struct doubt){.part = c->cmds[i].part, .ask = SIZE_MAX, .pending = true};
    }
}

/* Everything that was written to the partition was confirmed together with it? */
static bool is_confirmed(const struct confirmation *c, const struct doubt *d)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct mfs_cmd *cmd = &c->cmds[i];

        if (cmd->part == d->part && !cmd->rc && is_write(cmd) &&
            (d->ask == SIZE_MAX || !says_yes(&c->sent[d->ask], cmd)))
            return false;
    }
    return true;
}

/* The commands, and a WAIT behind those of each partition that has a replica. */
static void send_with_waits(struct confirmation *c)
{
    size_t n = c->n;
    bool replica;

    memcpy(c->sent, c->cmds, c->n * sizeof *c->cmds);
    for (size_t i = 0; i < c->count; i++) {
        era_of(c->store, c->doubts[i].part, &replica);
        if (!replica)
            continue;
        c->doubts[i].ask = n;
        c->sent[n++] = mfs_args_cmd(&c->wait, c->doubts[i].part);
    }
    mfs_exec_once(c->store, c->sent, n);
    memcpy(c->cmds, c->sent, c->n * sizeof *c->cmds);
    for (size_t i = 0; i < c->count; i++)
        c->doubts[i].pending = !is_confirmed(c, &c->doubts[i]);
    mfs_cmds_fini(c->sent + c->n, n - c->n);
}

static bool any_pending(const struct confirmation *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->doubts[i].pending)
            return true;
    return false;
}

static void confirm(struct confirmation *c, bool sent)
{
    int64_t until;

    mfs_args_init(&c->ping, "PING");
    mfs_args_init(&c->wait, "WAIT");
    mfs_args_int(&c->wait, 1);
    mfs_args_int(&c->wait, WAIT_MS);
    if (!sent)
        send_with_waits(c);
    until = mfs_clock_mono() + c->store->opts.io_timeout;
    while (any_pending(c))
        ask(c, mfs_clock_mono() >= until);
}

void mfs_exec_confirmed(struct mfs_store *store, struct mfs_cmd *cmds, size_t n, bool sent)
{
    struct mfs_cmd two[2]; /* the everyday call has one command, or many */
    struct doubt one;
    struct confirmation c = {.store = store, .cmds = cmds, .n = n};

    c.doubts = n > 1 ? malloc(n * sizeof *c.doubts) : &one;
    c.sent = n > 1 ? malloc(2 * n * sizeof *c.sent) : two;
    if (c.doubts && c.sent) {
        collect(&c);
        if (c.count)
            confirm(&c, sent);
        else if (!sent)
            mfs_exec_once(store, cmds, n);
    } else {
        for (size_t i = 0; i < n; i++)
            cmds[i].rc = -ENOMEM;
    }
    if (n > 1) {
        free(c.doubts);
        free(c.sent);
    }
}
