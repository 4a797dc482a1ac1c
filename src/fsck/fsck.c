/* The passes. One that finds nothing is enough. Otherwise what three in a row find alike is wrong,
 * if nothing held clients up meanwhile, and no transaction was under way throughout that
 * housekeeping will end. What looks wrong each time, but is changing, may rest in the next. Mending
 * is followed by another round.
 *
 * Two might miss the same name, which was renamed in both: if the first read its inode after the
 * one rename had changed it, and the second before the other did. What changes in the middle one of
 * three has changed its inode after the first had read it, and before the last does. */
#include "fsck/fsck.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fsck/judge/judge.h"
#include "fsck/mend/mend.h"
#include "fsck/scan/scan.h"

#define PASSES_MAX 12 /* of a round */
#define AGREE      2  /* passes that find the same as the one before */
#define UNSETTLED  2  /* passes more for what looks wrong each time, but never the same */
#define ROUNDS_MAX 4

struct fsck {
    struct mfs_store *store;
    struct mfs_fsck_opts opts; /* defaults filled in */
    struct mfs_fsck_report *report;
    struct mfs_err *err;
    uint32_t slice;
};

/* --- passes -------------------------------------------------------------------------------------
 */

/* How far a round has come. */
struct looks {
    bool calm; /* nothing held clients up in the last pass */
    int agreed, unsettled;
};

/* What began before the last pause is over behind it; how long the others are does not matter. */
static int64_t pause_before(const struct fsck *k, const struct looks *l)
{
    bool last = l->agreed + 1 == AGREE;

    return last || k->opts.pause < MFS_FSCK_PAUSE ? k->opts.pause : MFS_FSCK_PAUSE;
}

static void wait_a_while(const struct mfs_fsck_opts *opts, int64_t pause)
{
    int64_t end = mfs_clock_mono() + pause, left;

    while ((left = end - mfs_clock_mono()) > 0 && !(opts->stop && *opts->stop)) {
        if (opts->progress)
            opts->progress(opts->arg, "waiting for another look", (uint64_t)(pause - left),
                           (uint64_t)pause);
        mfs_clock_sleep(left < MFS_SEC ? left : MFS_SEC);
    }
}

static int pass(struct fsck *k, struct mfs_census *c, bool *disturbed)
{
    int rc = mfs_census_init(c, k->store);

    c->stale = k->opts.stale;
    c->slice = k->slice;
    c->slices = k->opts.slices;
    if (!rc)
        rc = mfs_census_scan(c, k->store, &k->opts, disturbed, k->err);
    if (!rc)
        rc = mfs_census_judge(c);
    if (rc == -ENOMEM)
        mfs_err_set(k->err, rc, "out of memory");
    k->report->passes++;
    return rc;
}

/* A transaction that was there before and that housekeeping is still to end. */
static bool in_transition(const struct mfs_census *now, const struct mfs_census *before)
{
    for (size_t i = 0; i < now->notes.n; i++) {
        const struct mfs_seen_note *n = mfs_flat_at(&now->notes, i);

        if (n->age < now->stale && mfs_census_noted(before, n->txn))
            return true;
    }
    return false;
}

static void swap(struct mfs_census *a, struct mfs_census *b)
{
    struct mfs_census t = *a;

    *a = *b;
    *b = t;
}

/* Another look at what *c found. If it counts, what all that have agreed so far found is left. */
static int look_again(struct fsck *k, struct mfs_census *c, struct looks *l)
{
    struct mfs_census before = {0};
    bool disturbed = false, agrees = false;
    int rc;

    wait_a_while(&k->opts, pause_before(k, l));
    if (k->opts.stop && *k->opts.stop)
        return mfs_err_set(k->err, -EINTR, "stopped");
    swap(c, &before);
    rc = pass(k, c, &disturbed);
    if (!rc) {
        agrees = l->calm && !disturbed && !in_transition(c, &before);
        if (agrees && mfs_findings_unsettled(&c->found, &before.found) && l->unsettled-- > 0)
            agrees = false;
        if (agrees)
            k->report->changed += mfs_findings_keep_common(&c->found, &before.found);
    }
    l->agreed = agrees ? l->agreed + 1 : 0;
    l->calm = !rc && !disturbed;
    mfs_census_fini(&before);
    return rc == -EAGAIN ? 0 : rc;
}

/* 0, and what is certainly wrong is in c->found. */
static int round_of_passes(struct fsck *k, struct mfs_census *c)
{
    struct looks l = {.unsettled = UNSETTLED};
    bool disturbed = false;
    int rc = pass(k, c, &disturbed);

    if (rc && rc != -EAGAIN)
        return rc;
    if (!rc && c->found.list.n == 0)
        return 0;
    l.calm = !rc && !disturbed;
    for (int i = 1; i < PASSES_MAX; i++) {
        rc = look_again(k, c, &l);
        if (rc)
            return rc;
        if (l.agreed == AGREE || (l.calm && c->found.list.n == 0))
            return 0;
    }
    return mfs_err_set(k->err, -EBUSY,
                       "partitions move, or transactions are held up, all the time; try again "
                       "later");
}

/* --- the report ---------------------------------------------------------------------------------
 */

static int path_of(const struct mfs_census *c, const struct mfs_found *f, struct mfs_buf *out)
{
    if (f->dir && f->name)
        return mfs_census_path_of(c, f->dir, f->name, f->name_len, out);
    return f->ino ? mfs_census_path(c, f->ino, out) : mfs_buf_append(out, "", 1);
}

static int report_one(struct mfs_fsck_report *r, const struct mfs_census *c,
                      const struct mfs_found *f)
{
    struct mfs_fsck_finding *to;
    struct mfs_buf path;
    int rc;

    to = reallocarray(r->findings, r->n + 1, sizeof *r->findings);
    if (!to)
        return -ENOMEM;
    r->findings = to;
    to += r->n;
    mfs_buf_init(&path);
    rc = path_of(c, f, &path);
    *to = (struct mfs_fsck_finding){.kind = mfs_fault_word(f->fault),
                                    .leak = mfs_fault_leak(f->fault),
                                    .ino = f->ino,
                                    .part = f->part,
                                    .path = rc ? NULL : strdup(mfs_buf_data(&path)),
                                    .text = strdup(f->text),
                                    .why = ""};
    mfs_buf_fini(&path);
    r->n++;
    r->left++;
    return to->path && to->text ? 0 : -ENOMEM;
}

static int report_all(struct fsck *k, const struct mfs_census *c)
{
    struct mfs_fsck_report *r = k->report;
    int rc = 0;

    r->inodes = c->inodes.n;
    r->names = c->entries.n;
    r->stripes = c->stripes.n;
    r->keys = c->keys;
    r->lost = c->lost.n;
    for (size_t i = 0; i < c->found.list.n && !rc; i++)
        rc = report_one(r, c, mfs_flat_at(&c->found.list, i));
    return rc ? mfs_err_set(k->err, rc, "out of memory") : 0;
}

void mfs_fsck_report_free(struct mfs_fsck_report *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n; i++) {
        free((char *)r->findings[i].path);
        free((char *)r->findings[i].text);
    }
    free(r->findings);
    free(r);
}

/* --- mending ------------------------------------------------------------------------------------
 */

/* Housekeeping adds no name that no user asked for, nor takes from a count what it only suspects: a
 * client that was stopped may be about to do that itself. */
static bool mends_itself(enum mfs_fault fault)
{
    return mfs_fault_leak(fault) && fault != MFS_FAULT_NAMELESS && fault != MFS_FAULT_LINKS_MANY;
}

/* What this round found, which is the end of the report. True: another look is worth it, as
 * something was mended, or changed by itself. */
static bool mend_round(struct fsck *k, struct mfs_mender *m, struct mfs_census *c)
{
    struct mfs_fsck_finding *to = k->report->findings + k->report->n - c->found.list.n;
    bool again = false;

    for (size_t i = 0; i < c->found.list.n; i++) {
        const struct mfs_found *f = mfs_flat_at(&c->found.list, i);
        int rc = k->opts.leaks && !mends_itself(f->fault) ? -EOPNOTSUPP : mfs_mender_mend(m, c, f);

        to[i].state = rc ? MFS_FSCK_LEFT : MFS_FSCK_MENDED;
        to[i].why = rc == -EOPNOTSUPP ? "not by a program" : rc ? strerrordesc_np(-rc) : "";
        again = again || !rc || rc == -ESTALE;
        if (k->opts.progress)
            k->opts.progress(k->opts.arg, "mending", i + 1, c->found.list.n);
    }
    return again;
}

static int run_round(struct fsck *k, struct mfs_mender *m, bool *again)
{
    struct mfs_census c = {0};
    int rc = round_of_passes(k, &c);

    *again = false;
    k->report->left = 0;
    if (!rc)
        rc = report_all(k, &c);
    if (!rc && m && k->report->left)
        *again = mend_round(k, m, &c);
    mfs_census_fini(&c);
    return rc;
}

/* What an earlier round could not mend and the last one finds again is told once. */
static void forget_retold(struct mfs_fsck_report *r, size_t from, size_t first)
{
    size_t kept = from;

    for (size_t i = from; i < r->n; i++) {
        struct mfs_fsck_finding *f = &r->findings[i];

        if (i < first && f->state == MFS_FSCK_LEFT) {
            free((char *)f->path);
            free((char *)f->text);
        } else {
            r->findings[kept++] = *f;
        }
    }
    r->n = kept;
}

static int run_slice(struct fsck *k, struct mfs_mender *m)
{
    size_t left = k->report->left, before = k->report->n;
    bool again = true;
    int rc = 0;

    for (int i = 0; i < ROUNDS_MAX && again && !rc; i++) {
        size_t first = k->report->n;

        if (m)
            mfs_mender_keep_house(m);
        rc = run_round(k, m, &again);
        if (!rc)
            forget_retold(k->report, before, first);
    }
    k->report->left += left;
    return rc;
}

static int run(struct fsck *k)
{
    struct mfs_mender *m = NULL;
    int rc = 0;

    if (k->opts.mend) {
        rc = mfs_mender_create(&m, k->store, k->opts.meta);
        if (rc)
            return mfs_err_set(k->err, rc, "partitions: %s", strerror(-rc));
    }
    for (k->slice = 0; k->slice < k->opts.slices && !rc; k->slice++)
        rc = run_slice(k, m);
    mfs_mender_destroy(m);
    return rc;
}

int mfs_fsck_run(struct mfs_store *store, const struct mfs_fsck_opts *opts,
                 struct mfs_fsck_report **report, struct mfs_err *err)
{
    struct fsck k = {.store = store, .opts = *opts, .err = err};
    int rc;

    if (!k.opts.pause)
        k.opts.pause = k.opts.mend ? MFS_FSCK_PAUSE_MENDER : MFS_FSCK_PAUSE;
    if (!k.opts.stale)
        k.opts.stale = MFS_FSCK_STALE;
    if (!k.opts.slices)
        k.opts.slices = 1;
    *report = calloc(1, sizeof **report);
    if (!*report)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    k.report = *report;
    rc = run(&k);
    if (rc) {
        mfs_fsck_report_free(*report);
        *report = NULL;
    }
    return rc;
}
