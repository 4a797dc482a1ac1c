/* Partitions with a replica: a call that writes returns when the replica has what was written, so
 * that nothing is lost that anybody has been told of when the replica takes over.
 *
 * Behind what a call writes to a partition goes a question, in the same pipeline, so that the
 * everyday call costs no round trip more. Where the table says that there is a replica it is WAIT:
 * how many replicas have all that the connection has had executed? Else it is mfs_alone: is there
 * none that could take over? For the table may be old, the process knows (decisions/0023). Where
 * that is not enough, as the pipeline was torn apart (a partition that moves, a lost connection),
 * or the replica is behind, or there is one, the partition is asked again by itself, both; the
 * first makes the second answer for all that has been executed so far. When a replica has taken
 * over in between ("era"), what the partition's former process had answered may be lost: that is
 * done again where it may be, and fails where it may not.
 *
 *   sent with ──┬── which says yes, in the attempt that answered the rest ──> confirmed
 *   a question  ├── which says no ──> asked again
 *               └── another era ──┬── idempotent: sent again ──> asked again
 *                                 └── -EIO */
#include "store/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "partition/protocol.h"
#include "store/args.h"
#include "store/reply.h"

#define WAIT_MS 200 /* that a process waits for its replica before it says how it stands */

struct doubt {
    uint32_t part, era;
    bool pending; /* not confirmed yet */
    bool termed;  /* it has a replica, its process said last, … */
    bool waits;   /* … or the table says so */
    size_t ask;   /* where its question is among what is sent; SIZE_MAX: none is */
};

/* A call that writes. */
struct confirmation {
    struct mfs_store *store;
    struct mfs_cmd *cmds; /* its commands */
    size_t n;
    struct doubt *doubts; /* the partitions that it writes to */
    size_t count;
    struct mfs_cmd *sent; /* room for the commands and a question per partition, or two each */
    struct mfs_args alone, wait;
};

/* From how many words on a command has to be confirmed, by its effect. */
static const uint32_t confirm_from[] = {
#define CONFIRM(effect, flags, confirm) [MFS_##effect] = (confirm),
    MFS_EFFECTS(CONFIRM)};

static const struct {
    const char *name;
    size_t len;
    enum mfs_effect effect;
} known[] = {
#define SERVER(command, effect)            {command, sizeof command - 1, MFS_##effect},
#define MODULE(name, words, first, effect) {"mfs_" #name, sizeof "mfs_" #name - 1, MFS_##effect},
    MFS_SERVER_COMMANDS(SERVER) MFS_COMMANDS(MODULE)};

/* What nobody has said anything of changes something. */
static bool is_write(const struct mfs_cmd *cmd)
{
    const struct mfs_arg *word = &cmd->argv[0];

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].len == word->len && !strncasecmp(word->p, known[i].name, word->len))
            return cmd->argc >= confirm_from[known[i].effect];
    return true;
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

/* Has the partition's replica, or need none have, all that was executed before this question, and
 * `other`, which went out before it? Sent once more on another connection it speaks of nothing. */
static bool says_yes(const struct mfs_cmd *asked, const struct mfs_cmd *other)
{
    return !asked->rc && !other->rc && asked->attempt == other->attempt &&
           asked->era == other->era && mfs_reply_int(asked->reply) > 0;
}

/* Whether the partition is to be asked. */
static bool look(struct confirmation *c, struct doubt *d)
{
    d->era = era_of(c->store, d->part, &d->waits);
    d->waits = d->waits || d->termed;
    if (!undo(c->cmds, c->n, d->part, d->era))
        return true;
    repeat(c->store, c->cmds, c->n);
    return false; /* another look, as that may have taken a while */
}

static void judge(struct confirmation *c, struct doubt *d, bool last)
{
    const struct mfs_cmd *alone = &c->sent[d->ask], *wait = d->waits ? alone + 1 : alone;
    int rc = alone->rc ? alone->rc : wait->rc;

    d->pending = false;
    d->termed = !alone->rc && !mfs_reply_int(alone->reply);
    if (alone->era == d->era && (says_yes(alone, alone) || says_yes(wait, alone)))
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

        d->ask = SIZE_MAX;
        if (!d->pending || !look(c, d))
            continue;
        d->ask = n;
        c->sent[n++] = question(&c->alone, d->part);
        if (d->waits)
            c->sent[n++] = question(&c->wait, d->part);
    }
    mfs_exec_once(c->store, c->sent, n);
    for (size_t i = 0; i < c->count; i++)
        if (c->doubts[i].ask != SIZE_MAX)
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
            c->doubts[c->count++] = (struct doubt){.part = c->cmds[i].part};
    }
}

/* Everything that was written to the partition was confirmed together with it? */
static bool is_confirmed(const struct confirmation *c, const struct doubt *d)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct mfs_cmd *cmd = &c->cmds[i];

        if (cmd->part == d->part && !cmd->rc && is_write(cmd) && !says_yes(&c->sent[d->ask], cmd))
            return false;
    }
    return true;
}

/* The commands, and a question behind those of each partition. */
static void send_with_questions(struct confirmation *c)
{
    size_t n = c->n;

    memcpy(c->sent, c->cmds, c->n * sizeof *c->cmds);
    for (size_t i = 0; i < c->count; i++) {
        struct doubt *d = &c->doubts[i];

        era_of(c->store, d->part, &d->waits);
        d->ask = n;
        c->sent[n++] = mfs_args_cmd(d->waits ? &c->wait : &c->alone, d->part);
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

static void confirm(struct confirmation *c)
{
    int64_t until;

    mfs_args_init(&c->alone, "mfs_alone");
    mfs_args_init(&c->wait, "WAIT");
    mfs_args_int(&c->wait, 1);
    mfs_args_int(&c->wait, WAIT_MS);
    send_with_questions(c);
    until = mfs_clock_mono() + c->store->opts.io_timeout;
    while (any_pending(c))
        ask(c, mfs_clock_mono() >= until);
}

void mfs_exec_confirmed(struct mfs_store *store, struct mfs_cmd *cmds, size_t n)
{
    struct mfs_cmd two[2]; /* the everyday call has one command, or many */
    struct doubt one;
    struct confirmation c = {.store = store, .cmds = cmds, .n = n};

    c.doubts = n > 1 ? malloc(n * sizeof *c.doubts) : &one;
    c.sent = n > 1 ? malloc(2 * n * sizeof *c.sent) : two;
    if (c.doubts && c.sent) {
        collect(&c);
        if (c.count)
            confirm(&c);
        else
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
