/* Calls of partitions' commands: arguments in their forms, answers as bytes. */
#include "meta/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "meta/call.h"
#include "meta/session/session.h"

void mfs_call_command(struct mfs_call *c, const char *name)
{
    c->cmd = (struct mfs_cmd){0};
    mfs_args_init(&c->args, name);
}

/* The command of the arguments as they are now. */
static void seal_args(struct mfs_call *c, uint32_t part)
{
    struct mfs_cmd set = c->cmd;

    c->cmd = mfs_args_cmd(&c->args, part);
    c->cmd.idempotent = set.idempotent;
    c->cmd.full_at_once = set.full_at_once;
    c->cmd.not_after = set.not_after;
}

int mfs_call_run(struct mfs_meta *meta, struct mfs_call *c, uint32_t part)
{
    if (part >= meta->nparts)
        return -ESTALE; /* an ino that was never given out */
    seal_args(c, part);
    return mfs_session_note_outcome(meta, mfs_store_exec(meta->store, &c->cmd, 1));
}

void mfs_call_post(struct mfs_meta *meta, struct mfs_call *c, uint32_t part)
{
    if (part >= meta->nparts)
        return;
    seal_args(c, part);
    if (mfs_store_post(meta->store, &c->cmd))
        mfs_session_leaves(meta); /* what it would have ended: no memory for it, say */
}

void mfs_call_fini(struct mfs_call *c)
{
    mfs_cmds_fini(&c->cmd, 1);
}

struct mfs_bytes mfs_reply_bytes(const struct mfs_reply *r)
{
    struct mfs_bytes b;

    b.p = mfs_reply_str(r, &b.n);
    return b;
}

struct mfs_bytes mfs_call_text(const struct mfs_call *c)
{
    return mfs_reply_bytes(c->cmd.reply);
}

struct mfs_call *mfs_calls_add(struct mfs_calls *b, const char *name, uint32_t part)
{
    struct mfs_call *c = &b->call[b->n];

    assert(b->n < MFS_CALLS_MAX);
    b->part[b->n++] = part;
    mfs_call_command(c, name);
    return c;
}

int mfs_calls_run(struct mfs_meta *meta, struct mfs_calls *b)
{
    return mfs_calls_run_bits(meta, b, NULL, NULL, 0);
}

/* A bitmap comes from a partition, and may be longer than there are partitions. */
size_t mfs_bits_most(const struct mfs_meta *meta, size_t nbits)
{
    return nbits < meta->nparts / 8 + 1 ? 8 * nbits : meta->nparts;
}

/* Commands for all partitions in the bitmap, behind the n that are there. */
static size_t add_bits(struct mfs_meta *meta, struct mfs_call *c, const unsigned char *bits,
                       size_t nbits, struct mfs_cmd *cmds)
{
    size_t n = 0;

    for (uint32_t p = 0; p < meta->nparts && p / 8 < nbits; p++) {
        if (!mfs_bits_test(bits, nbits, p))
            continue;
        seal_args(c, p);
        cmds[n++] = c->cmd;
    }
    return n;
}

int mfs_calls_run_bits(struct mfs_meta *meta, struct mfs_calls *b, struct mfs_call *c,
                       const unsigned char *bits, size_t nbits)
{
    struct mfs_cmd few[MFS_CALLS_MAX], *cmds = few;
    size_t n = b->n, more;
    int rc;

    if (nbits) {
        cmds = malloc((b->n + mfs_bits_most(meta, nbits)) * sizeof *cmds);
        if (!cmds)
            return -ENOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        seal_args(&b->call[i], b->part[i]);
        cmds[i] = b->call[i].cmd;
    }
    more = nbits ? add_bits(meta, c, bits, nbits, cmds + n) : 0;
    rc = n + more ? mfs_store_exec(meta->store, cmds, n + more) : 0;
    mfs_session_note_outcome(meta, rc);
    for (size_t i = 0; i < n; i++)
        b->call[i].cmd = cmds[i];
    mfs_cmds_fini(cmds + n, more);
    if (nbits)
        free(cmds);
    return rc;
}

void mfs_calls_fini(struct mfs_calls *b)
{
    for (size_t i = 0; i < b->n; i++)
        mfs_call_fini(&b->call[i]);
}

int mfs_call_bits(struct mfs_meta *meta, struct mfs_call *c, const unsigned char *bits, size_t n,
                  mfs_call_each_fn *each, void *arg)
{
    struct mfs_cmd *cmds = calloc(mfs_bits_most(meta, n) + 1, sizeof *cmds);
    size_t count;
    int rc;

    if (!cmds)
        return -ENOMEM;
    count = add_bits(meta, c, bits, n, cmds);
    rc = count ? mfs_store_exec(meta->store, cmds, count) : 0;
    for (size_t i = 0; each && i < count; i++)
        each(arg, cmds[i].part, cmds[i].rc, mfs_reply_bytes(cmds[i].reply));
    mfs_cmds_fini(cmds, count);
    free(cmds);
    return rc;
}

struct mfs_ino_arg mfs_ino_arg(uint64_t ino)
{
    struct mfs_ino_arg a;

    mfs_put_be64(a.b, ino);
    return a;
}

struct mfs_time_arg mfs_time_arg(struct timespec ts)
{
    struct mfs_time_arg a;

    mfs_time_encode(ts, a.b);
    return a;
}

struct mfs_time_arg mfs_now_arg(void)
{
    return mfs_time_arg(mfs_clock_real());
}

void mfs_part_arg(uint32_t part, char out[2])
{
    mfs_put_be16(out, (uint16_t)part);
}
