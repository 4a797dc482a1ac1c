/* Single changes whose answer was lost, and the list of those that nobody could be told of, or that
 * could not be given back, yet, as their partition did not answer either: it may have hung, with
 * the change before it. */
#include "meta/deferred/doubt.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/coherence/leases.h"
#include "meta/coherence/notices.h"
#include "meta/ops/ops.h"

#define MOST 1024 /* kept to be told of later; far more than can be under way at one time */

enum what { CONTENT, ATTRIBUTES, KEEPER, PLACE, FCNTL, FLOCK };

struct doubtful {
    enum what what;
    uint64_t ino;
    uint64_t session, number; /* of the append that has the place; number: owner, partition */
};

struct mfs_doubts {
    pthread_mutex_t mutex; /* guards what follows; a leaf */
    struct doubtful list[MOST];
    size_t n;
    bool busy; /* with `now`, which is not in the list */
    struct doubtful now;
};

struct mfs_doubts *mfs_doubts_create(void)
{
    struct mfs_doubts *d = calloc(1, sizeof *d);

    if (d)
        pthread_mutex_init(&d->mutex, NULL);
    return d;
}

void mfs_doubts_destroy(struct mfs_doubts *d)
{
    if (d)
        pthread_mutex_destroy(&d->mutex);
    free(d);
}

/* ---- telling --------------------------------------------------------------------------------- */

/* Whether it was changed or not: with the version that it has now, nobody forgets what is true. The
 * holders are read after that, as after a change. */
static int tell_content(struct mfs_meta *meta, uint64_t ino)
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

static int tell_attributes(struct mfs_meta *meta, uint64_t ino)
{
    struct mfs_attr attr;
    int rc = mfs_meta_getattr(meta, ino, &attr);

    if (rc)
        return rc;
    if (S_ISREG(attr.mode) && attr.nlink == 0)
        mfs_meta_unrefed_by_the_dead(meta, ino);
    else if (S_ISREG(attr.mode))
        rc = mfs_leases_file_changed_at_home(meta, ino, NULL);
    else if (S_ISDIR(attr.mode))
        mfs_leases_changed(meta, ino);
    return rc;
}

static int tell_keeper(struct mfs_meta *meta, uint64_t dir, uint32_t part)
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

/* As an appender who has stored nothing, if the place is his. */
static int give_place_back(struct mfs_meta *meta, const struct doubtful *what)
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

static int give_locks_back(struct mfs_meta *meta, const struct doubtful *what)
{
    const struct mfs_lock all = {
        .type = F_UNLCK, .start = 0, .end = INT64_MAX, .owner = what->number};

    if (what->session != meta->sid)
        return 0; /* they died with it */
    return mfs_lock_give_back(meta, what->ino, what->what == FLOCK, &all);
}

static int tell(struct mfs_meta *meta, const struct doubtful *what)
{
    switch (what->what) {
    case CONTENT:
        return tell_content(meta, what->ino);
    case ATTRIBUTES:
        return tell_attributes(meta, what->ino);
    case KEEPER:
        return tell_keeper(meta, what->ino, (uint32_t)what->number);
    case PLACE:
        return give_place_back(meta, what);
    default:
        return give_locks_back(meta, what);
    }
}

/* ---- later ----------------------------------------------------------------------------------- */

static bool is_same(const struct doubtful *a, const struct doubtful *b)
{
    return a->what == b->what && a->ino == b->ino && a->session == b->session &&
           a->number == b->number;
}

static void keep(struct mfs_doubts *d, struct doubtful what)
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
static bool begin_one(struct mfs_doubts *d)
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

static void end_one(struct mfs_doubts *d)
{
    pthread_mutex_lock(&d->mutex);
    d->busy = false;
    pthread_mutex_unlock(&d->mutex);
}

void mfs_doubts_retry(struct mfs_meta *meta)
{
    struct mfs_doubts *d = meta->doubts;
    size_t n;

    pthread_mutex_lock(&d->mutex);
    n = d->n;
    pthread_mutex_unlock(&d->mutex);
    /* One that does not answer is asked again at once for nothing else, as a rule (store/pool.c).
     */
    while (n-- > 0 && begin_one(d)) {
        if (mfs_is_doubtful(tell(meta, &d->now)))
            keep(d, d->now);
        else
            mfs_meta_settle(meta, d->now.ino);
        end_one(d);
    }
}

/* ---- the changes ----------------------------------------------------------------------------- */

static void tell_or_keep(struct mfs_meta *meta, struct doubtful what)
{
    if (mfs_is_doubtful(tell(meta, &what)))
        keep(meta->doubts, what);
}

void mfs_doubt_content(struct mfs_meta *meta, uint64_t ino, int rc)
{
    if (!mfs_is_doubtful(rc))
        return;
    mfs_filecache_revoke(meta->files, ino);
    if (meta->opts.changed)
        meta->opts.changed(meta->opts.arg, ino, 0, NULL, NULL);
    tell_or_keep(meta, (struct doubtful){.what = CONTENT, .ino = ino});
}

void mfs_doubt_place(struct mfs_meta *meta, uint64_t ino, uint64_t session, uint64_t number, int rc)
{
    if (mfs_is_doubtful(rc) && number)
        tell_or_keep(meta, (struct doubtful){PLACE, ino, session, number});
}

void mfs_doubt_unlocked(struct mfs_meta *meta, uint64_t ino, bool flock, uint64_t session,
                        uint64_t owner, int rc)
{
    if (mfs_is_doubtful(rc))
        tell_or_keep(meta, (struct doubtful){flock ? FLOCK : FCNTL, ino, session, owner});
}

static bool is_locks_of(const struct doubtful *what, uint64_t ino, bool flock, uint64_t owner)
{
    return what->what == (flock ? FLOCK : FCNTL) && what->ino == ino && what->number == owner;
}

void mfs_doubt_unlocked_not(struct mfs_meta *meta, uint64_t ino, bool flock, uint64_t owner)
{
    struct mfs_doubts *d = meta->doubts;
    size_t kept = 0;

    pthread_mutex_lock(&d->mutex);
    while (d->busy && is_locks_of(&d->now, ino, flock, owner)) {
        pthread_mutex_unlock(&d->mutex);
        mfs_clock_sleep(MFS_MSEC); /* until it is given back, or in the list */
        pthread_mutex_lock(&d->mutex);
    }
    for (size_t i = 0; i < d->n; i++)
        if (!is_locks_of(&d->list[i], ino, flock, owner))
            d->list[kept++] = d->list[i];
    d->n = kept;
    pthread_mutex_unlock(&d->mutex);
}

void mfs_doubt_attributes(struct mfs_meta *meta, uint64_t ino, int rc)
{
    if (!mfs_is_doubtful(rc))
        return;
    mfs_filecache_revoke(meta->files, ino);
    mfs_dircache_revoke(meta->dirs, ino);
    tell_or_keep(meta, (struct doubtful){.what = ATTRIBUTES, .ino = ino});
}

void mfs_doubt_added(struct mfs_meta *meta, uint64_t dir, uint32_t part, int rc)
{
    if (mfs_is_doubtful(rc))
        tell_or_keep(meta, (struct doubtful){.what = KEEPER, .ino = dir, .number = part});
}

void mfs_doubt_removed(struct mfs_meta *meta, uint64_t dir, const char *name, int rc)
{
    struct mfs_attr attr;

    if (!mfs_is_doubtful(rc) || !mfs_filecache_name(meta->files, dir, name, &attr))
        return;
    mfs_filecache_forget(meta->files, dir, name, 0);
    tell_or_keep(meta, (struct doubtful){.what = ATTRIBUTES, .ino = attr.ino});
}
