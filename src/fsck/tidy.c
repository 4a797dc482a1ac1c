#include "fsck/tidy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/threads/ticker.h"
#include "fsck/fsck.h"
#include "meta/call.h"
#include "meta/internal.h"

#define AREA        "tidy"
#define INTERVAL    (5 * MFS_SEC)
#define LOCK_LIFE   (30 * MFS_SEC)
#define LOCK_RENEW  (5 * MFS_SEC)
#define BREATH      MFS_MSEC /* between steps of a look: others are served first */
#define OBJECT_SIZE 100      /* bytes, of a key or name in a census */
#define TRIES       3

struct mfs_tidy {
    struct mfs_store *store;
    struct mfs_meta *meta;
    struct mfs_tidy_opts opts;
    struct mfs_ticker ticker;
    atomic_bool stop;

    /* The thread's. */
    bool due;
    unsigned tries; /* searches in a row after which something was left */
    int64_t locked; /* mono: renewed */
    uint64_t *dead; /* heap */
    size_t ndead;
};

/* --- one at a time: #tidy in partition 0
 * ----------------------------------------------------------
 */

static int lock(struct mfs_tidy *t)
{
    struct mfs_ino_arg sid = mfs_ino_arg(mfs_meta_session(t->meta));
    struct mfs_call c;
    int rc;

    mfs_call_command(&c, "mfs_tidy");
    mfs_args_bin(&c.args, sid.b, sizeof sid.b);
    mfs_args_int(&c.args, LOCK_LIFE / MFS_MSEC);
    rc = mfs_call_run(t->meta, &c, 0);
    if (!rc && !mfs_reply_str(c.cmd.reply, NULL))
        rc = -EBUSY;
    mfs_call_fini(&c);
    t->locked = mfs_clock_mono();
    return rc;
}

static void renew_lock(struct mfs_tidy *t)
{
    int64_t now = mfs_clock_mono();
    struct mfs_call c;

    if (now - t->locked < LOCK_RENEW)
        return;
    t->locked = now;
    mfs_call_command(&c, "PEXPIRE");
    mfs_args_str(&c.args, "#tidy");
    mfs_args_int(&c.args, LOCK_LIFE / MFS_MSEC);
    mfs_call_post(t->meta, &c, 0);
}

/* Two that search at the same time, as one was stopped, do no harm. */
static void unlock(struct mfs_tidy *t)
{
    struct mfs_call c;

    mfs_call_command(&c, "DEL");
    mfs_args_str(&c.args, "#tidy");
    mfs_call_run(t->meta, &c, 0);
    mfs_call_fini(&c);
}

/* --- dead sessions ------------------------------------------------------------------------------
 */

static int take_dead(struct mfs_tidy *t, const struct mfs_reply *list)
{
    size_t n = mfs_reply_count(list);
    uint64_t *more = n ? reallocarray(t->dead, t->ndead + n, sizeof *more) : t->dead;

    if (n && !more)
        return -ENOMEM;
    t->dead = more;
    for (size_t i = 0; i < n; i++) {
        struct mfs_bytes sid = mfs_reply_bytes(mfs_reply_at(list, i));

        if (sid.n == 8)
            t->dead[t->ndead++] = mfs_get_be64(sid.p);
    }
    return 0;
}

static int find_dead(struct mfs_tidy *t)
{
    uint32_t nparts = mfs_store_nparts(t->store);
    int rc = 0;

    t->ndead = 0;
    for (uint32_t part = 0; part < nparts && !rc; part++) {
        struct mfs_call c;

        mfs_call_command(&c, "mfs_sessions_dead");
        c.cmd.idempotent = true;
        rc = mfs_call_run(t->meta, &c, part);
        if (!rc)
            rc = take_dead(t, c.cmd.reply);
        mfs_call_fini(&c);
    }
    return rc;
}

static int forget_dead(struct mfs_tidy *t)
{
    uint32_t nparts = mfs_store_nparts(t->store);
    int rc = 0;

    for (size_t i = 0; i < t->ndead && !rc; i++) {
        struct mfs_ino_arg sid = mfs_ino_arg(t->dead[i]);
        struct mfs_call c;

        mfs_call_command(&c, "mfs_session_bury");
        mfs_args_bin(&c.args, sid.b, sizeof sid.b);
        c.cmd.idempotent = true;
        rc = mfs_call_run(t->meta, &c, (uint32_t)(t->dead[i] % nparts));
        mfs_call_fini(&c);
    }
    return rc;
}

/* --- a search -----------------------------------------------------------------------------------
 */

static void progress(void *arg, const char *what, uint64_t done, uint64_t all)
{
    struct mfs_tidy *t = arg;

    (void)what;
    (void)done;
    renew_lock(t);
    if (!all)
        mfs_clock_sleep(BREATH);
}

/* How many things that die with their clients are left, and are not people's to mend. */
static size_t tell(const struct mfs_fsck_report *r)
{
    size_t mended = 0, left = 0, odd = 0;

    for (size_t i = 0; i < r->n; i++) {
        const struct mfs_fsck_finding *f = &r->findings[i];

        if (f->state == MFS_FSCK_MENDED)
            mended++;
        else if (f->leak)
            left++;
        else
            odd++;
        mfs_debug(AREA, "%s: inode %" PRIx64 ", partition %u: %s", f->kind, f->ino, f->part,
                  f->text);
    }
    if (mended)
        mfs_info(AREA, "%zu things that clients had left were cleared away", mended);
    if (left || odd)
        mfs_warn(AREA, "%zu things are wrong that housekeeping leaves alone, see memefs fsck",
                 left + odd);
    return left;
}

/* Of so many keys, and about as many names. */
static int count_slices(struct mfs_tidy *t, uint32_t *slices)
{
    uint32_t nparts = mfs_store_nparts(t->store);
    uint64_t keys = 0;
    int rc = 0;

    for (uint32_t part = 0; part < nparts && !rc; part++) {
        struct mfs_call c;

        mfs_call_command(&c, "DBSIZE");
        c.cmd.idempotent = true;
        rc = mfs_call_run(t->meta, &c, part);
        if (!rc)
            keys += (uint64_t)mfs_reply_int(c.cmd.reply);
        mfs_call_fini(&c);
    }
    *slices = t->opts.memory ? (uint32_t)(1 + 2 * keys * OBJECT_SIZE / t->opts.memory) : 1;
    return rc;
}

static int search(struct mfs_tidy *t)
{
    struct mfs_fsck_opts opts = {.mend = true,
                                 .leaks = true,
                                 .pause = t->opts.pause,
                                 .meta = t->meta,
                                 .stop = &t->stop,
                                 .progress = progress,
                                 .arg = t};
    struct mfs_fsck_report *report;
    struct mfs_err err;
    size_t left;
    int rc = count_slices(t, &opts.slices);

    if (rc)
        return rc;
    rc = mfs_fsck_run(t->store, &opts, &report, &err);
    if (rc) {
        mfs_info(AREA, "search for what clients have left: %s", err.msg);
        return rc;
    }
    left = tell(report);
    mfs_fsck_report_free(report);
    t->tries = left ? t->tries + 1 : 0;
    return left && t->tries < TRIES ? -EAGAIN : 0;
}

int mfs_tidy_once(struct mfs_tidy *t)
{
    int rc = lock(t);

    if (rc)
        return rc;
    rc = find_dead(t);
    if (!rc && t->ndead) {
        rc = search(t);
        if (!rc)
            rc = forget_dead(t);
        rc = rc ? rc : 1;
    }
    unlock(t);
    return rc;
}

/* Only one client learns of dead sessions each time, so that one tries until it has been done, by
 * whichever client. */
static void tick(void *arg)
{
    struct mfs_tidy *t = arg;

    t->due = mfs_meta_search_wanted(t->meta) || t->due;
    if (t->due && !t->stop)
        t->due = mfs_tidy_once(t) < 0;
}

int mfs_tidy_start(struct mfs_tidy **out, struct mfs_store *store, struct mfs_meta *meta,
                   const struct mfs_tidy_opts *opts)
{
    struct mfs_tidy *t = calloc(1, sizeof *t);
    int rc;

    *out = NULL;
    if (!t)
        return -ENOMEM;
    t->store = store;
    t->meta = meta;
    t->opts = *opts;
    rc = mfs_ticker_start(&t->ticker, "tidy", opts->interval ? opts->interval : INTERVAL, tick, t);
    if (rc) {
        free(t);
        return rc;
    }
    *out = t;
    return 0;
}

void mfs_tidy_stop(struct mfs_tidy *t)
{
    if (!t)
        return;
    t->stop = true;
    mfs_ticker_stop(&t->ticker);
    free(t->dead);
    free(t);
}
