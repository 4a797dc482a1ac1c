/* Partitions with a replica: a call that writes returns when the replica has what was written. So
 * nothing that a caller was told of is lost when the replica takes over.
 *
 * For each partition that a call writes to (a "target"), a question follows the commands in the
 * same pipeline, so the usual call costs no further round trip. Where the table says that there is
 * a replica the question is WAIT: how many replicas have all that the connection has had executed?
 * Else it is mfs_alone: is there no replica that could take over? The table may be old; the process
 * knows (decisions/0023). The answer may not be enough: the pipeline was torn apart (a partition
 * that moves, a lost connection), the replica is behind, or there is a replica after all. Then the
 * partition is asked by itself, both questions; the first makes the second one answer for all that
 * has been executed so far. When a replica has taken over meanwhile (another "era"), what the
 * partition's former process executed may be lost: an idempotent command is sent again, another one
 * fails.
 *
 *   sent with ──┬── the answer is yes, in the attempt that answered the rest ──> confirmed
 *   a question  ├── the answer is no ──> asked again
 *               └── another era ──┬── idempotent: sent again ──> asked again
 *                                 └── -EIO
 *
 * Invariant: a target is pending until its process, of the present era, has answered yes for all
 * writes of the call, or the call's writes to it have failed. */
#include "store/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "partition/protocol.h"
#include "store/args.h"
#include "store/reply.h"

#define WAIT_MS 200 /* how long a process waits for its replica before it answers */

/* A partition that the call writes to. */
struct target {
    uint32_t part, era;
    bool pending; /* not confirmed yet */
    bool termed;  /* its process has said that it has a replica, … */
    bool waits;   /* … or the table says so: WAIT is asked, too */
    size_t ask;   /* index of its first question in `sent`; SIZE_MAX: none */
};

/* A call that writes. */
struct confirmation {
    struct mfs_store *store;
    struct mfs_cmd *cmds; /* its commands */
    size_t n;
    struct target *targets;
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

/* A command that is not known counts as a write. */
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

/* Writes that were answered by a process which a replica has replaced count as not answered.
 * Returns how many are to be sent again. */
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

/* Does the question's answer say that `other`, which was sent before it, needs no replica or has
 * reached it? Only if both were answered in one attempt: a question that was sent once more, on
 * another connection, speaks of nothing that was sent before. */
static bool says_yes(const struct mfs_cmd *asked, const struct mfs_cmd *other)
{
    return !asked->rc && !other->rc && asked->attempt == other->attempt &&
           asked->era == other->era && mfs_reply_int(asked->reply) > 0;
}

/* Is the partition to be asked now? */
static bool look(struct confirmation *c, struct target *t)
{
    t->era = era_of(c->store, t->part, &t->waits);
    t->waits = t->waits || t->termed;
    if (!undo(c->cmds, c->n, t->part, t->era))
        return true;
    repeat(c->store, c->cmds, c->n);
    return false; /* another look, as that may have taken a while */
}

static void judge(struct confirmation *c, struct target *t, bool last)
{
    const struct mfs_cmd *alone = &c->sent[t->ask], *wait = t->waits ? alone + 1 : alone;
    int rc = alone->rc ? alone->rc : wait->rc;

    t->pending = false;
    t->termed = !alone->rc && !mfs_reply_int(alone->reply);
    if (alone->era == t->era && (says_yes(alone, alone) || says_yes(wait, alone)))
        return;
    if (rc || last)
        fail(c->cmds, c->n, t->part, rc ? rc : -ETIMEDOUT);
    else
        t->pending = true;
}

/* Asks all pending targets at once. */
static void ask(struct confirmation *c, bool last)
{
    size_t n = 0;

    for (size_t i = 0; i < c->count; i++) {
        struct target *t = &c->targets[i];

        t->ask = SIZE_MAX;
        if (!t->pending || !look(c, t))
            continue;
        t->ask = n;
        c->sent[n++] = question(&c->alone, t->part);
        if (t->waits)
            c->sent[n++] = question(&c->wait, t->part);
        assert(n <= 2 * c->count);
    }
    mfs_exec_once(c->store, c->sent, n);
    for (size_t i = 0; i < c->count; i++)
        if (c->targets[i].ask != SIZE_MAX)
            judge(c, &c->targets[i], last);
    mfs_cmds_fini(c->sent, n);
}

/* ---- the call -------------------------------------------------------------------------------- */

static void collect(struct confirmation *c)
{
    size_t k;

    for (size_t i = 0; i < c->n; i++) {
        if (!is_write(&c->cmds[i]))
            continue;
        for (k = 0; k < c->count && c->targets[k].part != c->cmds[i].part; k++)
            ;
        if (k == c->count)
            c->targets[c->count++] = (struct target){.part = c->cmds[i].part};
    }
}

/* Has the question confirmed everything that was written to the partition? */
static bool is_confirmed(const struct confirmation *c, const struct target *t)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct mfs_cmd *cmd = &c->cmds[i];

        if (cmd->part == t->part && !cmd->rc && is_write(cmd) && !says_yes(&c->sent[t->ask], cmd))
            return false;
    }
    return true;
}

/* Sends the commands, and a question behind those of each target. */
static void send_with_questions(struct confirmation *c)
{
    size_t n = c->n;

    memcpy(c->sent, c->cmds, c->n * sizeof *c->cmds);
    for (size_t i = 0; i < c->count; i++) {
        struct target *t = &c->targets[i];

        era_of(c->store, t->part, &t->waits);
        t->ask = n;
        c->sent[n++] = mfs_args_cmd(t->waits ? &c->wait : &c->alone, t->part);
    }
    mfs_exec_once(c->store, c->sent, n);
    memcpy(c->cmds, c->sent, c->n * sizeof *c->cmds);
    for (size_t i = 0; i < c->count; i++)
        c->targets[i].pending = !is_confirmed(c, &c->targets[i]);
    mfs_cmds_fini(c->sent + c->n, n - c->n);
}

static bool any_pending(const struct confirmation *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->targets[i].pending)
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
    struct mfs_cmd two[2]; /* enough for the usual call, of one command */
    struct target one;
    struct confirmation c = {.store = store, .cmds = cmds, .n = n};

    c.targets = n > 1 ? malloc(n * sizeof *c.targets) : &one;
    c.sent = n > 1 ? malloc(2 * n * sizeof *c.sent) : two;
    if (c.targets && c.sent) {
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
        free(c.targets);
        free(c.sent);
    }
}
