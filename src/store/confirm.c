/* Partitions with a replica: a call that writes returns when the replica has what was written, so
 * that nothing is lost that anybody has been told of when the replica takes over.
 *
 * After the replies of a call's commands each partition that wrote is asked how many replicas have
 * all that it has executed so far (PING, then WAIT: it answers for what came before on the same
 * connection). When a replica has taken over in between ("era"), what the partition's former
 * process had answered may be lost: that is done again where it may be, and fails where it may not.
 *
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

/* Asks one partition. 1: its replica has everything; 0: not yet, or it is another era by now. */
static int ask(struct mfs_store *store, const struct doubt *d)
{
    struct mfs_args ping, wait;
    struct mfs_cmd cmds[2];
    int rc;

    mfs_args_init(&ping, "PING");
    mfs_args_init(&wait, "WAIT");
    mfs_args_int(&wait, 1);
    mfs_args_int(&wait, WAIT_MS);
    cmds[0] = mfs_args_cmd(&ping, d->part);
    cmds[1] = mfs_args_cmd(&wait, d->part);
    cmds[0].idempotent = cmds[1].idempotent = true;
    rc = mfs_exec_once(store, cmds, 2);
    if (!rc)
        rc = cmds[1].era == d->era && mfs_reply_int(cmds[1].reply) > 0;
    mfs_cmds_fini(cmds, 2);
    return rc;
}

/* One partition's turn. */
static void confirm(struct mfs_store *store, struct mfs_cmd *cmds, size_t n, struct doubt *d,
                    bool last)
{
    bool replica;
    int rc = 0;

    d->era = era_of(store, d->part, &replica);
    if (undo(cmds, n, d->part, d->era)) {
        repeat(store, cmds, n);
        return; /* another look, as that may have taken a while */
    }
    if (replica)
        rc = ask(store, d);
    if (rc < 0 || (replica && !rc && last))
        fail(cmds, n, d->part, rc < 0 ? rc : -ETIMEDOUT);
    d->pending = replica && !rc && !last;
}

static size_t collect(const struct mfs_cmd *cmds, size_t n, struct doubt *out)
{
    size_t count = 0, k;

    for (size_t i = 0; i < n; i++) {
        if (cmds[i].rc || !is_write(&cmds[i]))
            continue;
        for (k = 0; k < count && out[k].part != cmds[i].part; k++)
            ;
        if (k == count)
            out[count++] = (struct doubt){.part = cmds[i].part, .pending = true};
    }
    return count;
}

void mfs_confirm(struct mfs_store *store, struct mfs_cmd *cmds, size_t n)
{
    int64_t until = mfs_clock_mono() + store->opts.io_timeout;
    struct doubt one, *doubts = n > 1 ? malloc(n * sizeof *doubts) : &one;
    size_t count = doubts ? collect(cmds, n, doubts) : 0;
    bool pending = count > 0;

    for (size_t i = 0; i < n && !doubts; i++)
        fail(cmds, n, cmds[i].part, -ENOMEM);
    while (pending) {
        bool last = mfs_clock_mono() >= until;

        pending = false;
        for (size_t i = 0; i < count; i++) {
            if (doubts[i].pending)
                confirm(store, cmds, n, &doubts[i], last);
            pending |= doubts[i].pending;
        }
    }
    if (doubts != &one)
        free(doubts);
}
