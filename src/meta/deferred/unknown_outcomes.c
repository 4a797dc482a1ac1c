/* Single changes whose answer was lost. Each is followed up at once: the holders are notified, or
 * what may have been taken is given back. If the partition does not answer that, either (it may
 * have hung, with the change before it), the change is put into a list, and mfs_outcomes_retry does
 * it later, one at a time: `now` while that is under way, and back at the end of the list if it
 * fails again. The list has each change once. */
#include "meta/deferred/unknown_outcomes.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/coherence/revoke.h"
#include "meta/coherence/notices.h"
#include "meta/ops/ops.h"

#define MOST 1024 /* in the list; far more than can be under way at one time */

enum what { CONTENT, ATTRIBUTES, KEEPER, PLACE, FCNTL, FLOCK };

struct unknown {
    enum what what;
    uint64_t ino;
    uint64_t session, number; /* of the append that has the place; number: owner, partition, or
                               * where a name of the file was: the partition and 1; 0: nowhere */
};

struct mfs_outcomes {
    pthread_mutex_t mutex; /* guards what follows; a leaf */
    struct unknown list[MOST];
    size_t n;
    bool busy; /* with `now`, which is not in the list */
    struct unknown now;
};

struct mfs_outcomes *mfs_outcomes_create(void)
{
    struct mfs_outcomes *d = calloc(1, sizeof *d);

    if (d)
        pthread_mutex_init(&d->mutex, NULL);
    return d;
}

void mfs_outcomes_destroy(struct mfs_outcomes *d)
{
    if (d)
        pthread_mutex_destroy(&d->mutex);
    free(d);
}

/* ---- following up ---------------------------------------------------------------------------- */

/* Whether it was changed or not: with the version that it has now, no client forgets what is true.
 * The holders are read after that, as after a change. */
static int notify_content(struct mfs_meta *meta, uint64_t ino)
{
    struct mfs_attr attr;
    struct mfs_call c;
    int rc = mfs_meta_getattr(meta, ino, &attr);

    if (rc)
        return rc;
    rc = mfs_leases_ask_openers(meta, ino, &c);
    if (!rc)
        mfs_notices_send(meta, ino, attr.version, mfs_call_text(&c));
    mfs_call_fini(&c);
    return rc;
}

static int notify_attributes(struct mfs_meta *meta, uint64_t ino, uint64_t name_at)
{
    struct mfs_attr attr;
    int rc = 0;

    if (name_at)
        rc = mfs_leases_file_changed_at(meta, ino, (uint32_t)(name_at - 1));
    if (!rc)
        rc = mfs_meta_getattr(meta, ino, &attr);
    if (rc)
        return rc;
    if (S_ISREG(attr.mode) && attr.nlink == 0)
        mfs_meta_revoke_orphan(meta, ino);
    else if (S_ISREG(attr.mode))
        rc = mfs_leases_file_changed_at_home(meta, ino, NULL);
    else if (S_ISDIR(attr.mode))
        mfs_leases_changed(meta, ino);
    return rc;
}

static int notify_keeper(struct mfs_meta *meta, uint64_t dir, uint32_t part)
{
    char key[MFS_KEY_INO_LEN];
    struct mfs_bytes keeper;
    struct mfs_call c;
    int rc;

    mfs_key_ino(key, 'K', dir);
    mfs_call_command(&c, "GET");
    mfs_args_bin(&c.args, key, sizeof key);
    c.cmd.idempotent = true;
    rc = mfs_call_run(meta, &c, part);
    keeper = mfs_call_text(&c);
    if (!rc && keeper.n == 8 && mfs_get_be64(keeper.p) != meta->sid)
        mfs_leases_name_added(meta, dir, part, keeper);
    mfs_call_fini(&c);
    return rc;
}

/* As an appender that has stored nothing, if it has the place. */
static int give_place_back(struct mfs_meta *meta, const struct unknown *what)
{
    struct mfs_ino_arg key = mfs_ino_arg(what->ino), sid = mfs_ino_arg(what->session);
    struct mfs_ino_arg num = mfs_ino_arg(what->number);
    struct mfs_time_arg time = mfs_now_arg();
    struct mfs_call c;
    int rc;

    mfs_call_command(&c, "mfs_append_end");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, time.b, sizeof time.b);
    for (int i = 0; i < 2; i++)
        mfs_args_int(&c.args, 0);
    mfs_args_bin(&c.args, sid.b, sizeof sid.b);
    mfs_args_bin(&c.args, num.b, sizeof num.b);
    mfs_args_int(&c.args, 0);
    c.cmd.idempotent = true;
    rc = mfs_call_run(meta, &c, mfs_placement_home(what->ino));
    mfs_call_fini(&c);
    return rc;
}

static int give_locks_back(struct mfs_meta *meta, const struct unknown *what)
{
    const struct mfs_lock all = {
        .type = F_UNLCK, .start = 0, .end = INT64_MAX, .owner = what->number};

    if (what->session != meta->sid)
        return 0; /* they died with it */
    return mfs_lock_give_back(meta, what->ino, what->what == FLOCK, &all);
}

static int follow_up(struct mfs_meta *meta, const struct unknown *what)
{
    switch (what->what) {
    case CONTENT:
        return notify_content(meta, what->ino);
    case ATTRIBUTES:
        return notify_attributes(meta, what->ino, what->number);
    case KEEPER:
        return notify_keeper(meta, what->ino, (uint32_t)what->number);
    case PLACE:
        return give_place_back(meta, what);
    default:
        return give_locks_back(meta, what);
    }
}

/* ---- later ----------------------------------------------------------------------------------- */

static bool is_same(const struct unknown *a, const struct unknown *b)
{
    return a->what == b->what && a->ino == b->ino && a->session == b->session &&
           a->number == b->number;
}

static void retry_later(struct mfs_outcomes *d, struct unknown what)
{
    bool full, known = false;

    pthread_mutex_lock(&d->mutex);
    for (size_t i = 0; i < d->n; i++)
        known = known || is_same(&d->list[i], &what);
    full = d->n == MOST;
    if (!known && !full)
        d->list[d->n++] = what;
    pthread_mutex_unlock(&d->mutex);
    if (!known && full)
        mfs_warn("meta",
                 "inode %" PRIx64 ": others may not hear of a change that may have happened",
                 what.ino);
}

/* The first is `now`; false: there is none, or another thread is at it. */
static bool begin_one(struct mfs_outcomes *d)
{
    bool begun;

    pthread_mutex_lock(&d->mutex);
    begun = d->n > 0 && !d->busy;
    if (begun) {
        d->now = d->list[0];
        memmove(d->list, d->list + 1, --d->n * sizeof *d->list);
        d->busy = true;
    }
    pthread_mutex_unlock(&d->mutex);
    return begun;
}

static void end_one(struct mfs_outcomes *d)
{
    pthread_mutex_lock(&d->mutex);
    assert(d->busy);
    d->busy = false;
    pthread_mutex_unlock(&d->mutex);
}

void mfs_outcomes_retry(struct mfs_meta *meta)
{
    struct mfs_outcomes *d = meta->outcomes;
    size_t n;

    pthread_mutex_lock(&d->mutex);
    n = d->n;
    pthread_mutex_unlock(&d->mutex);
    /* One that does not answer is asked again at once for nothing else, as a rule (store/pool.c).
     */
    while (n-- > 0 && begin_one(d)) {
        if (mfs_outcome_is_unknown(follow_up(meta, &d->now)))
            retry_later(d, d->now);
        else
            mfs_meta_settle(meta, d->now.ino);
        end_one(d);
    }
}

/* ---- the changes ----------------------------------------------------------------------------- */

static void follow_up_or_retry(struct mfs_meta *meta, struct unknown what)
{
    if (mfs_outcome_is_unknown(follow_up(meta, &what)))
        retry_later(meta->outcomes, what);
}

void mfs_outcomes_content(struct mfs_meta *meta, uint64_t ino, int rc)
{
    if (!mfs_outcome_is_unknown(rc))
        return;
    mfs_filecache_revoke(meta->files, ino);
    if (meta->opts.changed)
        meta->opts.changed(meta->opts.arg, ino, 0, NULL, NULL);
    follow_up_or_retry(meta, (struct unknown){.what = CONTENT, .ino = ino});
}

void mfs_outcomes_place(struct mfs_meta *meta, uint64_t ino, uint64_t session, uint64_t number,
                        int rc)
{
    if (mfs_outcome_is_unknown(rc) && number)
        follow_up_or_retry(meta, (struct unknown){PLACE, ino, session, number});
}

void mfs_outcomes_unlock(struct mfs_meta *meta, uint64_t ino, bool flock, uint64_t session,
                         uint64_t owner, int rc)
{
    if (mfs_outcome_is_unknown(rc))
        follow_up_or_retry(meta, (struct unknown){flock ? FLOCK : FCNTL, ino, session, owner});
}

static bool is_locks_of(const struct unknown *what, uint64_t ino, bool flock, uint64_t owner)
{
    return what->what == (flock ? FLOCK : FCNTL) && what->ino == ino && what->number == owner;
}

void mfs_outcomes_unlock_cancel(struct mfs_meta *meta, uint64_t ino, bool flock, uint64_t owner)
{
    struct mfs_outcomes *d = meta->outcomes;
    size_t left = 0;

    pthread_mutex_lock(&d->mutex);
    while (d->busy && is_locks_of(&d->now, ino, flock, owner)) {
        pthread_mutex_unlock(&d->mutex);
        mfs_clock_sleep(MFS_MSEC); /* until it is given back, or in the list */
        pthread_mutex_lock(&d->mutex);
    }
    for (size_t i = 0; i < d->n; i++)
        if (!is_locks_of(&d->list[i], ino, flock, owner))
            d->list[left++] = d->list[i];
    d->n = left;
    pthread_mutex_unlock(&d->mutex);
}

void mfs_outcomes_attributes(struct mfs_meta *meta, uint64_t ino, int rc)
{
    if (!mfs_outcome_is_unknown(rc))
        return;
    mfs_filecache_revoke(meta->files, ino);
    mfs_dircache_revoke(meta->dirs, ino);
    follow_up_or_retry(meta, (struct unknown){.what = ATTRIBUTES, .ino = ino});
}

void mfs_outcomes_added(struct mfs_meta *meta, uint64_t dir, uint32_t part, int rc)
{
    if (mfs_outcome_is_unknown(rc))
        follow_up_or_retry(meta, (struct unknown){.what = KEEPER, .ino = dir, .number = part});
}

void mfs_outcomes_removed(struct mfs_meta *meta, uint64_t dir, const char *name, int rc)
{
    uint32_t part = mfs_placement_entry(dir, name, strlen(name), meta->nparts);
    struct mfs_attr attr;
    bool elsewhere;

    if (!mfs_outcome_is_unknown(rc) || !mfs_filecache_name(meta->files, dir, name, &attr))
        return;
    elsewhere = mfs_placement_home(attr.ino) != part;
    mfs_filecache_forget(meta->files, dir, name, 0);
    follow_up_or_retry(meta, (struct unknown){.what = ATTRIBUTES,
                                              .ino = attr.ino,
                                              .number = elsewhere ? 1 + (uint64_t)part : 0});
}
