/* Writing stripes. What a stripe's write looks like on the wire depends on its spans:
 *
 *   the whole stripe     STRLEN + SET: the value is exactly as large as its content
 *   a few small spans    one mfs_sput with all of them
 *   large spans          STRLEN + SETRANGE of each, without a copy of bulk data, and one
 *                        mfs_sput for the small ones among them
 *
 * Memory: redis doubles a value that SETRANGE lengthens. So the furthest span is written first,
 * which makes a new value at its full length at once; and a value that was lengthened step by step
 * is copied to its exact size when it has become a whole stripe (mfs_sfit, which no caller waits
 * for).
 *
 * Where no replica is wanted of a file's stripes, which its number says, mfs_here goes before what
 * changes one: the replica is told no more than its length (decisions/0046).
 *
 * A stripe whose bytes were lost (partition/journal/lost.h) takes no part of one: -EIO. A whole one
 * replaces it, though its length can't be told then. */
#include "data/stripes/stripes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/ino.h"
#include "base/log.h"
#include "cluster/placement.h"
#include "data/stripes/geometry.h"
#include "data/stripes/stripe_io.h"
#include "store/args.h"
#include "store/keys.h"
#include "store/reply.h"

#define PUT_DIRECT 16384U /* spans from this size on go by SETRANGE */
#define NUM_MAX    11     /* a decimal 32-bit number and NUL */

struct num {
    char text[NUM_MAX];
};

/* Where one stripe's commands are in the plan. */
struct share {
    char key[MFS_KEY_STRIPE_LEN];
    size_t first, n;
    bool whole, strlen_first;
};

/* The commands of a call, built into arrays that are large enough from the start. */
struct plan {
    struct mfs_store *store;
    uint32_t nparts;
    struct share *shares;
    struct mfs_cmd *cmds;
    struct mfs_arg *args;
    struct num *nums;
    size_t ncmds, nargs, nnums;
};

static uint32_t stripe_size(const struct mfs_store *store, const struct mfs_stripe_put *put)
{
    return mfs_store_stripe_of(store, put->ino);
}

static bool is_whole(const struct plan *p, const struct mfs_stripe_put *put)
{
    return put->nspans == 1 && put->spans[0].len == stripe_size(p->store, put);
}

static int plan_init(struct plan *p, struct mfs_store *store, const struct mfs_stripe_put *puts,
                     size_t n)
{
    size_t spans = 0;

    *p = (struct plan){.store = store, .nparts = mfs_store_nparts(store)};
    for (size_t i = 0; i < n; i++)
        spans += puts[i].nspans;
    p->shares = calloc(n, sizeof *p->shares);
    p->cmds = calloc(2 * n + spans, sizeof *p->cmds);
    p->args = malloc((6 * n + 5 * spans) * sizeof *p->args);
    p->nums = malloc(spans * sizeof *p->nums);
    return p->shares && p->cmds && p->args && p->nums ? 0 : -ENOMEM;
}

static void plan_fini(struct plan *p)
{
    if (p->cmds)
        mfs_cmds_fini(p->cmds, p->ncmds);
    free(p->shares);
    free(p->cmds);
    free(p->args);
    free(p->nums);
}

static void add_arg(struct plan *p, const void *bytes, size_t len)
{
    struct mfs_cmd *cmd = &p->cmds[p->ncmds - 1];

    p->args[p->nargs++] = (struct mfs_arg){bytes, len};
    cmd->argc++;
}

static void add_num(struct plan *p, uint32_t value)
{
    struct num *num = &p->nums[p->nnums++];

    add_arg(p, num->text, (size_t)snprintf(num->text, sizeof num->text, "%u", value));
}

/* Writing the same bytes again does no harm. */
static void add_cmd(struct plan *p, uint32_t part, const char *name, size_t len)
{
    p->cmds[p->ncmds++] =
        (struct mfs_cmd){.part = part, .argv = p->args + p->nargs, .idempotent = true};
    add_arg(p, name, len);
}

/* One that changes the stripe. */
static void add_change(struct plan *p, const struct mfs_stripe_put *put, uint32_t part,
                       const char *name, size_t len)
{
    if (!put->stripe || !(put->ino & MFS_INO_ALONE)) {
        add_cmd(p, part, name, len);
        return;
    }
    add_cmd(p, part, "mfs_here", 8);
    add_arg(p, name, len);
}

static void plan_sput(struct plan *p, const struct mfs_stripe_put *put, struct share *s,
                      uint32_t part)
{
    add_change(p, put, part, "mfs_sput", 8);
    add_arg(p, s->key, sizeof s->key);
    for (size_t i = put->nspans; i-- > 0;) {
        if (put->spans[i].len >= PUT_DIRECT)
            continue;
        add_num(p, put->spans[i].off);
        add_arg(p, put->spans[i].p, put->spans[i].len);
    }
}

static void plan_direct(struct plan *p, const struct mfs_stripe_put *put, struct share *s,
                        uint32_t part)
{
    for (size_t i = put->nspans; i-- > 0;) {
        if (put->spans[i].len < PUT_DIRECT)
            continue;
        add_change(p, put, part, "SETRANGE", 8);
        add_arg(p, s->key, sizeof s->key);
        add_num(p, put->spans[i].off);
        add_arg(p, put->spans[i].p, put->spans[i].len);
    }
}

static void plan_parts(struct plan *p, const struct mfs_stripe_put *put, struct share *s,
                       uint32_t part)
{
    bool last_small = put->spans[put->nspans - 1].len < PUT_DIRECT;
    size_t direct = 0;

    for (size_t i = 0; i < put->nspans; i++)
        direct += put->spans[i].len >= PUT_DIRECT;
    if (direct) {
        s->strlen_first = true;
        add_cmd(p, part, "STRLEN", 6);
        add_arg(p, s->key, sizeof s->key);
    }
    if (last_small)
        plan_sput(p, put, s, part);
    plan_direct(p, put, s, part);
    if (!last_small && direct < put->nspans)
        plan_sput(p, put, s, part);
}

static void plan_put(struct plan *p, const struct mfs_stripe_put *put, struct share *s)
{
    uint32_t part = mfs_placement_stripe(put->ino, put->stripe, p->nparts);

    mfs_key_stripe(s->key, put->ino, put->stripe);
    s->first = p->ncmds;
    s->whole = is_whole(p, put);
    if (s->whole) {
        s->strlen_first = true;
        add_cmd(p, part, "STRLEN", 6);
        add_arg(p, s->key, sizeof s->key);
        add_change(p, put, part, "SET", 3);
        add_arg(p, s->key, sizeof s->key);
        add_arg(p, put->spans[0].p, put->spans[0].len);
    } else {
        plan_parts(p, put, s, part);
    }
    s->n = p->ncmds - s->first;
}

/* Lets redis give back what a value has grown beyond its content. */
static void fit(struct plan *p, const struct share *s)
{
    struct mfs_args a;
    struct mfs_cmd cmd;
    int rc;

    mfs_args_init(&a, "mfs_sfit");
    mfs_args_bin(&a, s->key, sizeof s->key);
    cmd = mfs_args_cmd(&a, p->cmds[s->first].part);
    rc = mfs_store_post(p->store, &cmd);
    if (rc)
        mfs_debug("data", "a stripe keeps its spare room: errno %d", -rc);
}

static void take_result(struct plan *p, struct mfs_stripe_put *put, const struct share *s)
{
    int64_t before = -1, after = 0, size = stripe_size(p->store, put);

    put->rc = 0;
    put->grown = 0;
    put->was = size;
    for (size_t i = 0; i < s->n; i++) {
        const struct mfs_cmd *cmd = &p->cmds[s->first + i];
        const struct mfs_reply *r = cmd->reply;
        bool sput = mfs_reply_type(r) == MFS_REPLY_ARRAY;
        int64_t len = mfs_reply_int(sput ? mfs_reply_at(r, 1) : r);

        if (cmd->rc == -EIO && s->whole && i == 0) { /* no string: a stripe that was lost */
            before = 0;
            continue;
        }
        if (cmd->rc) {
            put->rc = put->rc ? put->rc : cmd->rc;
            continue;
        }
        if (before < 0)
            before = sput ? mfs_reply_int(mfs_reply_at(r, 0)) : len;
        if (len > after)
            after = len;
    }
    if (s->whole)
        after = size;
    if (put->rc || before < 0)
        return;
    put->was = before;
    put->grown = after - before;
    if (!s->whole && before > 0 && before < after && after == size)
        fit(p, s);
}

int mfs_stripe_put(struct mfs_store *store, struct mfs_stripe_put *puts, size_t n, bool patient)
{
    struct plan p;
    int rc = plan_init(&p, store, puts, n);

    for (size_t i = 0; i < n; i++) {
        puts[i].rc = rc;
        puts[i].grown = 0;
        puts[i].was = stripe_size(store, &puts[i]);
    }
    if (rc)
        goto out;
    for (size_t i = 0; i < n; i++)
        plan_put(&p, &puts[i], &p.shares[i]);
    for (size_t i = 0; i < p.ncmds; i++)
        p.cmds[i].full_at_once = !patient;
    mfs_store_exec(store, p.cmds, p.ncmds);
    for (size_t i = 0; i < n; i++) {
        take_result(&p, &puts[i], &p.shares[i]);
        rc = rc ? rc : puts[i].rc;
    }
out:
    plan_fini(&p);
    return rc;
}

int mfs_stripes_write(struct mfs_store *store, uint64_t ino, uint64_t off, size_t len,
                      const void *buf, int64_t *alloc)
{
    uint32_t size = mfs_store_stripe_of(store, ino);
    size_t n = len ? (size_t)((off + len - 1) / size - off / size + 1) : 0, done = 0;
    struct mfs_stripe_put *puts = calloc(n ? n : 1, sizeof *puts);
    struct mfs_span *spans = calloc(n ? n : 1, sizeof *spans);
    int rc = puts && spans ? 0 : -ENOMEM;

    if (rc || !len)
        goto out;
    for (size_t i = 0; i < n; i++) {
        struct mfs_piece piece = mfs_geometry_piece(off + done, len - done, size);

        spans[i] = (struct mfs_span){piece.off, piece.len, (const char *)buf + done};
        puts[i] = (struct mfs_stripe_put){
            .ino = ino, .stripe = piece.stripe, .spans = &spans[i], .nspans = 1};
        done += piece.len;
    }
    rc = mfs_stripe_put(store, puts, n, true);
    for (size_t i = 0; i < n; i++)
        *alloc += puts[i].grown;
out:
    free(puts);
    free(spans);
    return rc;
}

int mfs_stripes_room(struct mfs_store *store, uint32_t part)
{
    struct mfs_args a;
    struct mfs_cmd cmd;
    int rc;

    /* Refused like any write when memory is full; else it does nothing, as the key does not exist.
     */
    mfs_args_init(&a, "SETRANGE");
    mfs_args_str(&a, MFS_KEY_NOTHING);
    mfs_args_int(&a, 0);
    mfs_args_bin(&a, "", 0);
    cmd = mfs_args_cmd(&a, part);
    cmd.idempotent = cmd.full_at_once = true;
    rc = mfs_store_exec(store, &cmd, 1);
    mfs_cmds_fini(&cmd, 1);
    return rc;
}
