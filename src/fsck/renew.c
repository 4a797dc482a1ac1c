/* Partitions that begin empty. One pass over all partitions tells which stripes, names and numbers
 * there must have been; nothing is taken for lost that a void covers (decisions/0020). No client
 * can reach the new partitions yet, so nothing of what is missing there is about to come. */
#include "fsck/renew.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/ino.h"
#include "base/ranges.h"
#include "cluster/placement.h"
#include "fsck/scan/scan.h"
#include "meta/call.h"
#include "meta/internal.h"
#include "meta/ops/ops.h"

#define LOOKS_MAX 8            /* until none is disturbed by a move */
#define GAP       (1ULL << 20) /* numbers that were given out and have left no trace elsewhere */

struct renew {
    struct mfs_meta *meta;
    const struct mfs_census *c;
    const bool *renewed;
    struct mfs_renewed_counts *counts;
    uint64_t *voids; /* inodes that have some, ascending */
    size_t nvoids;
};

/* ---- stripes --------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static int list_voids(struct renew *r)
{
    r->voids = calloc(r->c->sides.n + 1, sizeof *r->voids);
    if (!r->voids)
        return -ENOMEM;
    for (size_t i = 0; i < r->c->sides.n; i++) {
        const struct mfs_seen_side *s = mfs_flat_at(&r->c->sides, i);

        if (s->letter == 'V')
            r->voids[r->nvoids++] = s->ino;
    }
    qsort(r->voids, r->nvoids, sizeof *r->voids, by_number);
    return 0;
}

static int mark(struct renew *r, uint64_t ino, uint32_t n, uint64_t bytes)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino);
    struct mfs_call call;
    int rc;

    mfs_call_command(&call, "mfs_fsck_lost");
    mfs_args_bin(&call.args, key.b, sizeof key.b);
    mfs_args_int(&call.args, n);
    mfs_args_int(&call.args, (int64_t)bytes);
    call.cmd.idempotent = true;
    rc = mfs_call_run(r->meta, &call, mfs_placement_stripe(ino, n, r->c->nparts));
    if (!rc && mfs_reply_int(call.cmd.reply) == 1) {
        r->counts->stripes++;
        r->counts->bytes += bytes;
    }
    mfs_call_fini(&call);
    return rc;
}

/* Is some of [lo, hi) no void? */
static int has_content(const struct mfs_ranges *voids, uint64_t lo, uint64_t hi, bool *has)
{
    struct mfs_ranges content;
    int rc;

    mfs_ranges_init(&content);
    rc = mfs_ranges_add(&content, lo, hi);
    for (uint32_t i = 0; i < voids->n && !rc; i++)
        rc = mfs_ranges_take(&content, voids->v[i].lo, voids->v[i].hi);
    *has = content.n;
    mfs_ranges_fini(&content);
    return rc;
}

static int mark_stripes(struct renew *r, const struct mfs_seen_inode *i,
                        const struct mfs_ranges *voids)
{
    uint64_t size = mfs_ino_stripe_size(i->ino, r->c->stripe_size), before = r->counts->stripes;
    int rc = 0;

    for (uint64_t n = 1; n * size < i->end && !rc; n++) {
        uint64_t lo = n * size, hi = lo + size < i->end ? lo + size : i->end;
        bool has = true;

        if (!r->renewed[mfs_placement_stripe(i->ino, (uint32_t)n, r->c->nparts)])
            continue;
        if (voids->n)
            rc = has_content(voids, lo, hi, &has);
        if (!rc && has)
            rc = mark(r, i->ino, (uint32_t)n, hi - lo);
    }
    r->counts->files += r->counts->stripes > before;
    return rc;
}

static int mark_file(struct renew *r, const struct mfs_seen_inode *i)
{
    struct mfs_ranges voids;
    int rc = 0;

    mfs_ranges_init(&voids);
    if (bsearch(&i->ino, r->voids, r->nvoids, sizeof *r->voids, by_number))
        rc = mfs_meta_voids(r->meta, i->ino, &voids);
    if (!rc)
        rc = mark_stripes(r, i, &voids);
    mfs_ranges_fini(&voids);
    return rc;
}

static int mark_files(struct renew *r)
{
    int rc = list_voids(r);

    for (size_t k = 0; k < r->c->inodes.n && !rc; k++) {
        const struct mfs_seen_inode *i = mfs_flat_at(&r->c->inodes, k);

        if (S_ISREG(i->mode) && i->end > mfs_ino_stripe_size(i->ino, r->c->stripe_size))
            rc = mark_file(r, i);
    }
    return rc;
}

/* ---- the root, and numbers ------------------------------------------------------------------- */

/* Any partition may have names of it. */
static int spread_root(struct renew *r)
{
    int rc = 0;

    for (uint32_t p = 0; p < r->c->nparts && !rc; p++)
        rc = mfs_meta_spread(r->meta, MFS_ROOT_INO, p);
    return rc;
}

static void see(const struct renew *r, uint64_t *last, uint64_t ino)
{
    uint32_t home = mfs_ino_home(ino);

    if (home < r->c->nparts && mfs_ino_seq(ino) > last[home])
        last[home] = mfs_ino_seq(ino);
}

/* The last number of each partition that others know of. */
static void see_all(const struct renew *r, uint64_t *last)
{
    const struct mfs_census *c = r->c;

    for (size_t i = 0; i < c->entries.n; i++) {
        see(r, last, mfs_census_entry(c, i)->ino);
        see(r, last, mfs_census_entry(c, i)->dir);
    }
    for (size_t i = 0; i < c->shards.n; i++)
        see(r, last, ((const struct mfs_seen_shard *)mfs_flat_at(&c->shards, i))->dir);
    for (size_t i = 0; i < c->stripes.n; i++)
        see(r, last, ((const struct mfs_seen_stripe *)mfs_flat_at(&c->stripes, i))->ino);
    for (size_t i = 0; i < c->inodes.n; i++)
        see(r, last, ((const struct mfs_seen_inode *)mfs_flat_at(&c->inodes, i))->parent);
}

static int set_number(struct renew *r, uint32_t part, uint64_t least)
{
    uint64_t inodes = part == mfs_ino_home(MFS_ROOT_INO);
    struct mfs_call call;
    int rc;

    mfs_call_command(&call, "mfs_fsck_seq");
    mfs_args_int(&call.args, (int64_t)least);
    mfs_args_int(&call.args, (int64_t)(least - inodes));
    call.cmd.idempotent = true;
    rc = mfs_call_run(r->meta, &call, part);
    mfs_call_fini(&call);
    return rc;
}

static int set_numbers(struct renew *r)
{
    uint64_t *last = calloc(r->c->nparts, sizeof *last);
    int rc = last ? 0 : -ENOMEM;

    if (!rc)
        see_all(r, last);
    for (uint32_t p = 0; p < r->c->nparts && !rc; p++)
        if (r->renewed[p])
            rc = set_number(r, p, last[p] + GAP);
    free(last);
    return rc;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int scan(struct mfs_census *c, struct mfs_store *store, struct mfs_err *err)
{
    struct mfs_fsck_opts opts = {0};
    bool disturbed = false;
    int rc = mfs_census_init(c, store);

    if (!rc)
        rc = mfs_census_scan(c, store, &opts, &disturbed, err);
    if (!rc)
        mfs_census_sort(c);
    return rc;
}

static int renew(struct renew *r)
{
    int rc = set_numbers(r);

    if (!rc)
        rc = mark_files(r);
    if (!rc && r->renewed[mfs_ino_home(MFS_ROOT_INO)])
        rc = spread_root(r);
    free(r->voids);
    return rc;
}

int mfs_fsck_renew(struct mfs_store *store, const bool *renewed, struct mfs_renewed_counts *counts,
                   struct mfs_err *err)
{
    struct renew r = {.renewed = renewed, .counts = counts};
    struct mfs_meta_opts opts = {0};
    struct mfs_census c;
    int rc = -EAGAIN;

    *counts = (struct mfs_renewed_counts){0};
    for (int i = 0; i < LOOKS_MAX && rc == -EAGAIN; i++) {
        if (i)
            mfs_census_fini(&c);
        rc = scan(&c, store, err);
    }
    r.c = &c;
    if (!rc) {
        rc = mfs_meta_create(&r.meta, store, &opts);
        if (!rc)
            rc = renew(&r);
        if (rc)
            mfs_err_set(err, rc, "partitions: %s", strerror(-rc));
        mfs_meta_destroy(r.meta);
    }
    mfs_census_fini(&c);
    return rc;
}
