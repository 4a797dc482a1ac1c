/* What is kept about transactions, sessions and numbers, and the order of the whole. */
#include "fsck/judge/judge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/ino.h"

/* The name of an entry with an intent, as evidence. */
static int judge_intents(struct mfs_census *c)
{
    for (size_t i = 0; i < c->intents.n; i++) {
        const struct mfs_seen_intent *in = mfs_flat_at(&c->intents, i);
        const char *txn = in->bytes + MFS_ENTRY_LEN;
        struct mfs_found *f;

        if (mfs_census_noted(c, txn)) /* which has an age */
            continue;
        f = mfs_findings_add(&c->found, MFS_FAULT_INTENT, in->part, mfs_get_be64(in->bytes),
                             in->dir, mfs_hash64(txn, MFS_TXN_LEN, 0), mfs_census_name(c, in->name),
                             in->len, "a rename of it was begun that nobody will end");
        if (!f)
            return -ENOMEM;
        memcpy(f->txn, txn, sizeof f->txn);
    }
    return 0;
}

static bool intended(const struct mfs_census *c, const char *txn)
{
    for (size_t i = 0; i < c->intents.n; i++) {
        const struct mfs_seen_intent *in = mfs_flat_at(&c->intents, i);

        if (!memcmp(in->bytes + MFS_ENTRY_LEN, txn, MFS_TXN_LEN))
            return true;
    }
    return false;
}

static int judge_outcomes(struct mfs_census *c)
{
    for (size_t i = 0; i < c->txns.n; i++) {
        const struct mfs_seen_txn *t = mfs_flat_at(&c->txns, i);
        struct mfs_found *f;

        if (mfs_census_noted(c, t->txn) || intended(c, t->txn))
            continue;
        f = mfs_findings_add(&c->found, MFS_FAULT_OUTCOME, t->part, 0, 0,
                             mfs_hash64(t->txn, MFS_TXN_LEN, t->digest), NULL, 0,
                             "the outcome of a transaction that is over");
        if (!f)
            return -ENOMEM;
        memcpy(f->txn, t->txn, MFS_TXN_LEN);
    }
    return 0;
}

static int judge_notes(struct mfs_census *c)
{
    for (size_t i = 0; i < c->notes.n; i++) {
        const struct mfs_seen_note *n = mfs_flat_at(&c->notes, i);
        struct mfs_found *f;

        if (n->age < c->stale)
            continue;
        f = mfs_findings_add(
            &c->found, n->lock ? MFS_FAULT_MOVE_LOCK : MFS_FAULT_TRANSACTION, n->part, 0, 0,
            mfs_hash64(n->txn, MFS_TXN_LEN, 0), NULL, 0, "%s since %" PRId64 " s",
            n->lock ? "the lock on moves is held" : "a transaction is under way", n->age);
        if (!f)
            return -ENOMEM;
        memcpy(f->txn, n->txn, MFS_TXN_LEN);
    }
    return 0;
}

static int judge_orphans(struct mfs_census *c)
{
    for (size_t i = 0; i < c->orphans.n; i++) {
        const struct mfs_seen_listed *o = mfs_flat_at(&c->orphans, i);
        const struct mfs_seen_inode *inode = mfs_census_inode(c, o->ino);

        if (!mfs_census_has(c, o->ino) || (inode && inode->nlink == 0))
            continue;
        if (!mfs_findings_add(&c->found, MFS_FAULT_ORPHAN, o->part, o->ino, 0, inode != NULL, NULL,
                              0, "#orphans has an inode that %s",
                              inode ? "has names" : "does not exist"))
            return -ENOMEM;
    }
    return 0;
}

/* Housekeeping takes those without stripes off the list, so one that stays is left. */
static int judge_reaps(struct mfs_census *c)
{
    for (size_t i = 0; i < c->reaps.n; i++) {
        const struct mfs_seen_listed *r = mfs_flat_at(&c->reaps, i);
        const struct mfs_seen_inode *inode = mfs_census_inode(c, r->ino);

        if (!mfs_census_has(c, r->ino) || (!inode && mfs_census_has_stripes(c, r->ino)))
            continue;
        if (!mfs_findings_add(&c->found, MFS_FAULT_REAP, r->part, r->ino, 0, inode != NULL, NULL, 0,
                              "#reap has an inode that %s",
                              inode ? "exists" : "has no stripes any more"))
            return -ENOMEM;
    }
    return 0;
}

/* What a home has given out, as far as it is there. */
struct numbers {
    uint64_t last, inodes;
};

static int judge_number(struct mfs_census *c, uint32_t home, const struct numbers *n)
{
    uint64_t seq = mfs_ino_seq(n->last);
    struct mfs_found *f;

    if (seq <= c->seq[home])
        return 0;
    f = mfs_findings_add(&c->found, MFS_FAULT_SEQUENCE, home, n->last, 0, seq, NULL, 0,
                         "#seq is %" PRIu64 ", so its number would be given out again",
                         c->seq[home]);
    if (!f)
        return -ENOMEM;
    f->a = seq;
    f->b = n->inodes;
    return 0;
}

static int judge_numbers(struct mfs_census *c)
{
    struct numbers *of = calloc(c->nparts, sizeof *of); /* each home */
    int rc = of ? 0 : -ENOMEM;

    for (size_t i = 0; i < c->inodes.n && !rc; i++) {
        const struct mfs_seen_inode *inode = mfs_flat_at(&c->inodes, i);
        struct numbers *n = &of[mfs_ino_home(inode->ino)];

        n->inodes++;
        if (mfs_ino_seq(inode->ino) > mfs_ino_seq(n->last))
            n->last = inode->ino;
    }
    for (uint32_t home = 0; home < c->nparts && !rc; home++)
        rc = judge_number(c, home, &of[home]);
    free(of);
    return rc;
}

int mfs_census_judge(struct mfs_census *c)
{
    int (*const judges[])(struct mfs_census *) = {mfs_judge_names, mfs_judge_data, judge_intents,
                                                  judge_outcomes,  judge_notes,    judge_orphans,
                                                  judge_reaps,     judge_numbers};
    int rc = 0;

    for (size_t i = 0; i < sizeof judges / sizeof *judges && !rc; i++)
        rc = judges[i](c);
    if (!rc)
        mfs_findings_sort(&c->found);
    return rc;
}
