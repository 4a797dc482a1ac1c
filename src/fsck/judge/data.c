/* Stripes and what else is kept beside inodes, compared with these. */
#include "fsck/judge/judge.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/ino.h"
#include "cluster/placement.h"

/* The stripes of one inode: [from, to). */
struct run {
    uint64_t ino;
    size_t from, to;
};

static const struct mfs_seen_stripe *stripe_at(const struct mfs_census *c, size_t i)
{
    return mfs_flat_at(&c->stripes, i);
}

static uint64_t run_bytes(const struct mfs_census *c, const struct run *r)
{
    uint64_t sum = 0;

    for (size_t i = r->from; i < r->to; i++)
        sum += stripe_at(c, i)->len;
    return sum;
}

/* Nobody writes to them any more, so all of it is evidence. */
static int lost(struct mfs_census *c, const struct run *r)
{
    uint64_t digest = 0;
    struct mfs_found *f;

    for (size_t i = r->from; i < r->to; i++) {
        const struct mfs_seen_stripe *s = stripe_at(c, i);

        digest = mfs_hash64(&s->n, sizeof s->n, mfs_hash64(&s->len, sizeof s->len, digest));
    }
    f = mfs_findings_add(&c->found, MFS_FAULT_STRIPES, mfs_placement_home(r->ino), r->ino, 0,
                         digest, NULL, 0,
                         "%zu stripes, %" PRIu64 " bytes, of an inode that does not exist",
                         r->to - r->from, run_bytes(c, r));
    if (!f)
        return -ENOMEM;
    f->a = r->from;
    f->b = r->to;
    return 0;
}

/* What is written becomes known at the end, so of an open file there may be more. */
static int judge_run(struct mfs_census *c, const struct run *r)
{
    const struct mfs_seen_inode *i = mfs_census_inode(c, r->ino);
    const struct mfs_seen_stripe *last = stripe_at(c, r->to - 1);
    uint64_t end = (uint64_t)last->n * mfs_ino_stripe_size(r->ino, c->stripe_size) + last->len;
    struct mfs_found *f;

    if (!i)
        return mfs_census_reaped(c, r->ino) ? 0 : lost(c, r);
    if ((S_ISREG(i->mode) && end <= i->end) || mfs_census_open(c, r->ino))
        return 0;
    f = mfs_findings_add(&c->found, MFS_FAULT_BEYOND, mfs_placement_home(r->ino), r->ino, 0,
                         i->digest ^ end, NULL, 0,
                         "bytes are stored up to %" PRIu64 ", the record says up to %" PRIu64, end,
                         S_ISDIR(i->mode) ? 0 : i->end);
    if (!f)
        return -ENOMEM;
    f->a = end;
    return 0;
}

static int judge_stripes(struct mfs_census *c)
{
    struct run r = {0};
    int rc = 0;

    for (; r.from < c->stripes.n && !rc; r.from = r.to) {
        r.ino = stripe_at(c, r.from)->ino;
        for (r.to = r.from; r.to < c->stripes.n && stripe_at(c, r.to)->ino == r.ino; r.to++) {
        }
        rc = judge_run(c, &r);
    }
    return rc;
}

static const struct {
    char letter;
    enum mfs_fault dead;
    const char *text;
} sides[] = {
    {'A', MFS_FAULT_COUNT, "extended attributes"},
    {'O', MFS_FAULT_DEAD_OPENER, "openers"},
    {'L', MFS_FAULT_DEAD_LOCK, "locks"},
    {'P', MFS_FAULT_DEAD_APPENDER, "an appender"},
    {'V', MFS_FAULT_COUNT, "voids"},
    {'F', MFS_FAULT_COUNT, "allocated room"},
};

static int judge_side(struct mfs_census *c, const struct mfs_seen_side *s)
{
    const struct mfs_seen_inode *i = mfs_census_inode(c, s->ino);
    struct mfs_found *f = NULL;
    size_t k = 0;

    while (sides[k].letter != s->letter)
        k++;
    if (!i) {
        f = mfs_findings_add(&c->found, MFS_FAULT_LOOSE, s->part, s->ino, 0, (uint64_t)s->letter,
                             NULL, 0, "%s of an inode that does not exist", sides[k].text);
        if (f)
            f->a = (uint64_t)s->letter;
        return f ? 0 : -ENOMEM;
    }
    /* Of an inode without names housekeeping takes care. */
    if (!s->sid || mfs_census_alive(c, s->sid) || (i->nlink == 0 && s->letter == 'O'))
        return 0;
    f = mfs_findings_add(&c->found, sides[k].dead, s->part, s->ino, 0, s->sid, NULL, 0,
                         "%s: session %016" PRIx64 " is dead", sides[k].text, s->sid);
    if (f)
        f->a = s->sid;
    return f ? 0 : -ENOMEM;
}

int mfs_judge_data(struct mfs_census *c)
{
    int rc = judge_stripes(c);

    for (size_t i = 0; i < c->sides.n && !rc; i++)
        rc = judge_side(c, mfs_flat_at(&c->sides, i));
    return rc;
}
