/* Which inodes this client has open, has closed or read without their partitions knowing it yet,
 * and may have locked: what a new session has to register again, and what the end of a session has
 * to give back.
 *
 * An open is registered (counted at the inode's home), unregistered (counted here only), or being
 * registered, together with all that were unregistered when that began. An inode with any of the
 * latter two is in one of two queues: `unregistered`, by age, or `busy` while a thread registers. A
 * registration keeps its number until its partition has answered, so that it is done once; no close
 * of the inode is sent before that. Closes and access times wait in `later`. */
#include "base/table.h"
#include "meta/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "meta/session/opens.h"
#include "meta/session/session.h"
#include "meta/session/unregistered_opens.h"

struct open {
    uint64_t ino;
    uint32_t count;
    uint32_t closed;       /* besides: registered, but open no more */
    uint32_t unregistered; /* besides: open (meta/session/unregistered_opens.h) */
    uint32_t registering;  /* of count: in a registration that has not succeeded for certain yet */
    uint64_t number;       /* of that registration, however often it is tried */
    bool busy;             /* a thread is trying it */
    bool reopened;         /* unregistered, but a session before had it open */
    int64_t queued_at;     /* mono: the oldest unregistered open, or the last attempt that failed */
    bool locked;
    int64_t stale_since; /* not open, but for its partition, since then; 0: not so */
    UT_hash_handle hh;
    struct timespec atime;      /* its partition is to learn it; zeros: none */
    TAILQ_ENTRY(open) later;    /* in later, if its partition is to learn anything */
    TAILQ_ENTRY(open) by_state; /* in unregistered or busy, if anything is either */
};

TAILQ_HEAD(by_state, open);

struct mfs_opens {
    pthread_mutex_t mutex; /* guards what follows; a leaf */
    struct open *opens;
    TAILQ_HEAD(, open) later;     /* the oldest first */
    struct by_state unregistered; /* by queued_at */
    struct by_state busy;
    uint64_t numbers; /* of registrations */
    uint32_t reads;   /* inodes with an access time that their partition is to learn */
};

struct mfs_opens *mfs_opens_create(void)
{
    struct mfs_opens *o = calloc(1, sizeof *o);

    if (o) {
        pthread_mutex_init(&o->mutex, NULL);
        TAILQ_INIT(&o->later);
        TAILQ_INIT(&o->unregistered);
        TAILQ_INIT(&o->busy);
    }
    return o;
}

void mfs_opens_destroy(struct mfs_opens *o)
{
    struct open *e, *next;

    if (!o)
        return;
    HASH_ITER(hh, o->opens, e, next)
    {
        HASH_DEL(o->opens, e);
        free(e);
    }
    pthread_mutex_destroy(&o->mutex);
    free(o);
}

static struct open *find(struct mfs_opens *o, uint64_t ino)
{
    struct open *e;

    HASH_FIND(hh, o->opens, &ino, sizeof ino, e);
    return e;
}

static struct open *find_or_add(struct mfs_opens *o, uint64_t ino)
{
    struct open *e = find(o, ino);

    if (e)
        return e;
    e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->ino = ino;
    HASH_ADD(hh, o->opens, ino, sizeof e->ino, e);
    if (!e->hh.tbl) {
        free(e);
        return NULL;
    }
    return e;
}

static bool has_later(const struct open *e)
{
    return e->closed || e->atime.tv_sec;
}

static void drop_if_unused(struct mfs_opens *o, struct open *e)
{
    if (e->count || has_later(e) || e->unregistered || e->registering || e->busy || e->locked ||
        e->stale_since)
        return;
    HASH_DEL(o->opens, e);
    free(e);
}

/* --- not registered ------------------------------------------------------------------------- */

/* All of this under mutex. */

static bool is_unregistered(const struct open *e)
{
    return e->unregistered || e->registering;
}

/* Behind all others. */
static void queue(struct mfs_opens *o, struct open *e)
{
    e->queued_at = mfs_clock_mono();
    TAILQ_INSERT_TAIL(&o->unregistered, e, by_state);
}

/* Due at once. */
static void queue_first(struct mfs_opens *o, struct open *e)
{
    e->queued_at = 0;
    TAILQ_INSERT_HEAD(&o->unregistered, e, by_state);
}

/* All unregistered opens are registered together, under one number. */
static void number_registration(struct mfs_opens *o, struct open *e)
{
    e->number = ++o->numbers;
    e->registering = e->unregistered;
    e->count += e->unregistered;
    e->unregistered = 0;
}

static void add_unregistered(struct mfs_opens *o, struct open *e, bool at_once)
{
    bool queued = is_unregistered(e) || e->busy;

    e->unregistered++;
    if (!queued && at_once)
        queue_first(o, e);
    else if (!queued)
        queue(o, e);
}

static void take_back_unregistered(struct mfs_opens *o, struct open *e)
{
    assert(e->unregistered > 0);
    e->unregistered--;
    if (!is_unregistered(e) && !e->busy)
        TAILQ_REMOVE(&o->unregistered, e, by_state);
}

/* They count as open from now on. Those that were tried before are tried again, with no others: the
 * partition may have them. */
static struct mfs_open_count take_unregistered(struct mfs_opens *o, struct open *e)
{
    assert(!e->busy && is_unregistered(e));
    TAILQ_REMOVE(&o->unregistered, e, by_state);
    TAILQ_INSERT_TAIL(&o->busy, e, by_state);
    e->busy = true;
    if (!e->registering)
        number_registration(o, e);
    return (struct mfs_open_count){
        .ino = e->ino, .count = e->registering, .number = e->number, .reopened = e->reopened};
}

static void end_registering(struct mfs_opens *o, struct open *e, const struct mfs_open_count *c)
{
    assert(e && e->busy); /* drop_if_unused leaves it while it is */
    e->busy = false;
    TAILQ_REMOVE(&o->busy, e, by_state);
    if (c->registered && c->number == e->number) {
        e->registering = 0;
        e->reopened = e->reopened && e->unregistered;
    }
    if (is_unregistered(e))
        queue(o, e);
    drop_if_unused(o, e);
}

/* The partition does not answer: what else there is for it waits, too. */
static void put_off(struct mfs_opens *o, uint32_t part)
{
    struct open *e, *next, *last = TAILQ_LAST(&o->unregistered, by_state);

    for (e = TAILQ_FIRST(&o->unregistered); e; e = next) {
        next = e == last ? NULL : TAILQ_NEXT(e, by_state);
        if (mfs_placement_home(e->ino) != part)
            continue;
        TAILQ_REMOVE(&o->unregistered, e, by_state);
        queue(o, e);
    }
}

bool mfs_opens_add_unregistered(struct mfs_meta *meta, uint64_t ino)
{
    struct mfs_opens *o = meta->opens;
    struct open *e;

    pthread_mutex_lock(&o->mutex);
    e = find_or_add(o, ino);
    if (e)
        add_unregistered(o, e, false);
    pthread_mutex_unlock(&o->mutex);
    mfs_unregistered_work(meta->unregistered);
    return e != NULL;
}

enum mfs_opens_registration mfs_opens_registration(struct mfs_meta *meta, uint64_t ino)
{
    struct mfs_opens *o = meta->opens;
    enum mfs_opens_registration state = MFS_OPENS_REGISTERED;
    struct open *e;

    pthread_mutex_lock(&o->mutex);
    e = find(o, ino);
    if (e && (e->unregistered || (e->registering && e->count)))
        state = e->busy ? MFS_OPENS_BUSY : MFS_OPENS_UNREGISTERED;
    pthread_mutex_unlock(&o->mutex);
    return state;
}

static bool any_at(const struct by_state *list, uint32_t part)
{
    const struct open *e;

    TAILQ_FOREACH(e, list, by_state)
    {
        if (mfs_placement_home(e->ino) == part)
            return true;
    }
    return false;
}

bool mfs_opens_any_unregistered(struct mfs_meta *meta, uint32_t part)
{
    struct mfs_opens *o = meta->opens;
    bool any;

    pthread_mutex_lock(&o->mutex);
    any = any_at(&o->unregistered, part) || any_at(&o->busy, part);
    pthread_mutex_unlock(&o->mutex);
    return any;
}

void mfs_opens_end_registering(struct mfs_meta *meta, const struct mfs_open_count *list, size_t n)
{
    struct mfs_opens *o = meta->opens;
    bool failed = false;

    pthread_mutex_lock(&o->mutex);
    for (size_t i = 0; i < n; i++) {
        end_registering(o, find(o, list[i].ino), &list[i]);
        failed = failed || !list[i].registered;
    }
    if (failed)
        put_off(o, mfs_placement_home(list[0].ino));
    pthread_mutex_unlock(&o->mutex);
    mfs_unregistered_work(meta->unregistered);
}

bool mfs_opens_any_to_register(struct mfs_meta *meta)
{
    struct mfs_opens *o = meta->opens;
    bool any;

    pthread_mutex_lock(&o->mutex);
    any = !TAILQ_EMPTY(&o->unregistered);
    pthread_mutex_unlock(&o->mutex);
    return any;
}

bool mfs_opens_take_unregistered_of(struct mfs_meta *meta, uint64_t ino, int64_t before,
                                    struct mfs_open_count *one, uint64_t *sid)
{
    struct mfs_opens *o = meta->opens;
    struct open *e;
    bool any;

    pthread_mutex_lock(&o->mutex);
    e = find(o, ino);
    any = e && !e->busy && is_unregistered(e) && (!e->registering || e->queued_at < before);
    if (any)
        *one = take_unregistered(o, e);
    *sid = meta->sid;
    pthread_mutex_unlock(&o->mutex);
    return any;
}

size_t mfs_opens_take_unregistered(struct mfs_meta *meta, uint32_t part, int64_t before,
                                   struct mfs_open_count *list, size_t most, uint64_t *sid)
{
    struct mfs_opens *o = meta->opens;
    struct open *e, *next;
    size_t n = 0;

    pthread_mutex_lock(&o->mutex);
    for (e = TAILQ_FIRST(&o->unregistered); e && e->queued_at < before && n < most; e = next) {
        next = TAILQ_NEXT(e, by_state);
        if (part == MFS_OPENS_ANY)
            part = mfs_placement_home(e->ino);
        if (mfs_placement_home(e->ino) == part)
            list[n++] = take_unregistered(o, e);
    }
    *sid = meta->sid;
    pthread_mutex_unlock(&o->mutex);
    return n;
}

/* All of it is to be registered anew, before all else; a thread that is trying to just now does so
 * for the session before. */
static void renew(struct mfs_opens *o, struct open *e)
{
    if (is_unregistered(e) && !e->busy)
        TAILQ_REMOVE(&o->unregistered, e, by_state);
    e->unregistered += e->count;
    e->count = e->registering = 0;
    e->number = 0;
    e->reopened = e->unregistered > 0;
    if (!e->unregistered || e->busy)
        return;
    number_registration(o, e);
    queue_first(o, e);
}

void mfs_opens_add_registered(struct mfs_meta *meta, uint64_t ino, uint64_t sid)
{
    struct mfs_opens *o = meta->opens;
    struct open *e;

    pthread_mutex_lock(&o->mutex);
    e = find_or_add(o, ino);
    if (e && sid == meta->sid) {
        e->count++;
    } else if (e) {
        add_unregistered(o, e, true);
        e->reopened = true;
    }
    pthread_mutex_unlock(&o->mutex);
    mfs_unregistered_work(meta->unregistered);
}

/* --- what partitions learn later ------------------------------------------------------------ */

bool mfs_opens_closed(struct mfs_meta *meta, uint64_t ino)
{
    struct mfs_opens *o = meta->opens;
    struct open *e;
    bool counted;

    pthread_mutex_lock(&o->mutex);
    e = find(o, ino);
    counted = e && (e->unregistered || e->count);
    if (counted && e->unregistered) {
        take_back_unregistered(o, e);
        drop_if_unused(o, e);
    } else if (counted) {
        assert(e->count > 0);
        e->count--;
        if (!has_later(e))
            TAILQ_INSERT_TAIL(&o->later, e, later);
        e->closed++;
    }
    pthread_mutex_unlock(&o->mutex);
    mfs_ticker_work(&meta->closes_ticker);
    return counted;
}

void mfs_opens_read(struct mfs_meta *meta, uint64_t ino, struct timespec atime)
{
    struct mfs_opens *o = meta->opens;
    struct open *e;

    pthread_mutex_lock(&o->mutex);
    e = find_or_add(o, ino);
    if (e && !has_later(e))
        TAILQ_INSERT_TAIL(&o->later, e, later);
    if (e && !e->atime.tv_sec)
        o->reads++;
    if (e)
        e->atime = atime;
    pthread_mutex_unlock(&o->mutex);
    mfs_ticker_work(&meta->closes_ticker);
}

void mfs_opens_merge_read(struct mfs_meta *meta, struct mfs_attr *attr)
{
    struct mfs_opens *o = meta->opens;
    struct open *e;

    pthread_mutex_lock(&o->mutex);
    e = o->reads ? find(o, attr->ino) : NULL;
    if (e && mfs_timespec_cmp(attr->atime, e->atime) < 0)
        attr->atime = e->atime;
    pthread_mutex_unlock(&o->mutex);
}

/* A close must not overtake the open. */
static bool may_tell_later(const struct open *e)
{
    return has_later(e) && !e->registering;
}

/* Under mutex. */
static struct mfs_later take_later(struct mfs_opens *o, struct open *e)
{
    struct mfs_later l = {e->ino, e->closed, e->atime};

    if (has_later(e))
        TAILQ_REMOVE(&o->later, e, later);
    if (e->atime.tv_sec)
        o->reads--;
    e->closed = 0;
    e->atime = (struct timespec){0};
    drop_if_unused(o, e);
    return l;
}

bool mfs_opens_take_later_of(struct mfs_meta *meta, uint64_t ino, struct mfs_later *later,
                             uint64_t *sid)
{
    struct mfs_opens *o = meta->opens;
    struct open *e;
    bool any;

    pthread_mutex_lock(&o->mutex);
    e = find(o, ino);
    any = e && may_tell_later(e);
    if (any)
        *later = take_later(o, e);
    *sid = meta->sid;
    pthread_mutex_unlock(&o->mutex);
    return any;
}

size_t mfs_opens_take_later(struct mfs_meta *meta, struct mfs_later *list, size_t most,
                            uint64_t *sid)
{
    struct mfs_opens *o = meta->opens;
    struct open *e, *next;
    size_t n = 0;

    pthread_mutex_lock(&o->mutex);
    for (e = TAILQ_FIRST(&o->later); e && n < most; e = next) {
        next = TAILQ_NEXT(e, later);
        if (may_tell_later(e))
            list[n++] = take_later(o, e);
    }
    *sid = meta->sid;
    pthread_mutex_unlock(&o->mutex);
    return n;
}

bool mfs_opens_any_later(struct mfs_meta *meta)
{
    struct mfs_opens *o = meta->opens;
    bool any;

    pthread_mutex_lock(&o->mutex);
    any = !TAILQ_EMPTY(&o->later);
    pthread_mutex_unlock(&o->mutex);
    return any;
}

void mfs_opens_locked(struct mfs_meta *meta, uint64_t ino)
{
    struct mfs_opens *o = meta->opens;
    struct open *e;

    pthread_mutex_lock(&o->mutex);
    e = find_or_add(o, ino);
    if (e)
        e->locked = true;
    pthread_mutex_unlock(&o->mutex);
}

bool mfs_opens_stale(struct mfs_meta *meta, uint64_t ino)
{
    struct mfs_opens *o = meta->opens;
    int64_t now = mfs_clock_mono();
    struct open *e;
    bool over;

    pthread_mutex_lock(&o->mutex);
    e = find_or_add(o, ino);
    if (e && (e->count || e->closed || e->unregistered || e->registering))
        e->stale_since = 0;
    else if (e && !e->stale_since)
        e->stale_since = now;
    over = e && e->stale_since && now - e->stale_since > meta->limits.stale_open;
    if (over)
        e->stale_since = 0;
    if (e)
        drop_if_unused(o, e);
    pthread_mutex_unlock(&o->mutex);
    return over;
}

size_t mfs_opens_renew(struct mfs_meta *meta, uint64_t sid, struct mfs_open_state **list)
{
    struct mfs_opens *o = meta->opens;
    struct open *e, *next;
    size_t n = 0;

    pthread_mutex_lock(&o->mutex);
    *list = calloc(HASH_COUNT(o->opens) + 1, sizeof **list);
    HASH_ITER(hh, o->opens, e, next)
    {
        renew(o, e);
        if (*list && (e->registering || e->locked))
            (*list)[n++] = (struct mfs_open_state){e->ino, e->registering, e->number, e->locked};
        e->locked = false;
        e->stale_since = 0;
        take_later(o, e);
    }
    meta->sid = sid;
    pthread_mutex_unlock(&o->mutex);
    mfs_unregistered_work(meta->unregistered);
    return n;
}
