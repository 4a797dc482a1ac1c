/* Files that were closed and read. Their partitions learn of it a moment later, of many at once: a
 * command costs a partition more than what it does for one file. Until then a file that others
 * unlink stays an orphan, and access times are old. */
#include "meta/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "meta/call.h"
#include "meta/deferred/deferred.h"
#include "meta/ops/ops.h"
#include "meta/session/opens.h"
#include "meta/session/session.h"

#define ITEM      24   /* bytes: ino, count, access time */
#define AT_ONCE   2048 /* inodes taken together */
#define CALL_MOST 256  /* told in one call: bounds the time that it holds up the partition */

/* What one partition is told. */
struct group {
    struct mfs_args args;
    char list[CALL_MOST * ITEM];
    size_t n;
};

static int by_home(const void *a, const void *b)
{
    uint32_t x = mfs_placement_home(((const struct mfs_later *)a)->ino);
    uint32_t y = mfs_placement_home(((const struct mfs_later *)b)->ino);

    return (x > y) - (x < y);
}

static void put_item(struct group *g, const struct mfs_later *l)
{
    char *at = g->list + ITEM * g->n++;

    mfs_put_be64(at, l->ino);
    mfs_put_be32(at + 8, l->closed);
    mfs_time_encode(l->atime, at + 12);
}

/* The first of the list that go to the same partition. */
static size_t fill_group(struct group *g, const struct mfs_later *list, size_t n)
{
    uint32_t home = mfs_placement_home(list[0].ino);

    g->n = 0;
    while (g->n < n && g->n < CALL_MOST && mfs_placement_home(list[g->n].ino) == home)
        put_item(g, &list[g->n]);
    return g->n;
}

static struct mfs_cmd group_cmd(struct mfs_meta *meta, struct group *g,
                                const struct mfs_ino_arg *sid, uint32_t part)
{
    mfs_args_init(&g->args, "mfs_close");
    mfs_args_bin(&g->args, sid->b, sizeof sid->b);
    mfs_args_int(&g->args, meta->stripe_size);
    mfs_args_bin(&g->args, g->list, ITEM * g->n);
    return mfs_args_cmd(&g->args, part);
}

/* The answer of mfs_close. */
static void take_freed(struct mfs_meta *meta, const struct mfs_reply *list)
{
    for (size_t i = 0; i + 1 < mfs_reply_count(list); i += 2) {
        struct mfs_bytes ino = mfs_reply_bytes(mfs_reply_at(list, i));

        if (ino.n == 8)
            mfs_meta_freed(meta, mfs_get_be64(ino.p), mfs_reply_bytes(mfs_reply_at(list, i + 1)));
    }
}

/* Tells the partitions, all at the same time; 0 or the first error. */
static int send_closes(struct mfs_meta *meta, uint64_t session, struct mfs_later *list, size_t n)
{
    size_t most = n / CALL_MOST + (n < meta->nparts ? n : meta->nparts) + 1, groups = 0, done = 0;
    struct mfs_ino_arg sid = mfs_ino_arg(session);
    struct mfs_cmd *cmds = malloc(most * sizeof *cmds);
    struct group *g = malloc(most * sizeof *g);
    int rc = -ENOMEM;

    if (!cmds || !g) {
        mfs_session_leaves(meta);
        goto out;
    }
    qsort(list, n, sizeof *list, by_home);
    for (; done < n; groups++) {
        uint32_t part = mfs_placement_home(list[done].ino);

        done += fill_group(&g[groups], list + done, n - done);
        cmds[groups] = group_cmd(meta, &g[groups], &sid, part);
    }
    rc = mfs_store_exec(meta->store, cmds, groups);
    if (rc) /* whatever it was: they are open there, and nobody closes them any more */
        mfs_session_leaves(meta);
    for (size_t i = 0; i < groups; i++)
        take_freed(meta, cmds[i].reply);
    mfs_cmds_fini(cmds, groups);
out:
    free(cmds);
    free(g);
    return rc;
}

int mfs_meta_close(struct mfs_meta *meta, uint64_t ino, bool wait)
{
    bool counted = mfs_opens_closed(meta, ino);
    struct mfs_later l = {.ino = ino, .closed = 1};
    uint64_t sid = meta->sid;

    if (counted && !wait)
        return 0;
    if (counted && !mfs_opens_take_later_of(meta, ino, &l, &sid))
        return 0;
    return send_closes(meta, sid, &l, 1);
}

void mfs_closes_flush_of(struct mfs_meta *meta, uint64_t ino)
{
    struct mfs_later l;
    uint64_t sid;

    if (mfs_opens_take_later_of(meta, ino, &l, &sid))
        send_closes(meta, sid, &l, 1);
}

void mfs_closes_flush(void *arg)
{
    struct mfs_meta *meta = arg;
    struct mfs_later *list = malloc(AT_ONCE * sizeof *list);
    uint64_t sid;
    size_t n;
    int rc;

    while (list && (n = mfs_opens_take_later(meta, list, AT_ONCE, &sid)) > 0) {
        rc = send_closes(meta, sid, list, n);
        if (rc < 0)
            mfs_warn("meta", "some of %zu closed files stay open for their partitions: %s", n,
                     strerror(-rc));
    }
    free(list);
    if (mfs_opens_any_later(meta)) /* their opens are being registered, or there is no memory */
        mfs_ticker_work(&meta->closes_ticker);
}
