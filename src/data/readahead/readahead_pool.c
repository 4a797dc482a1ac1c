/* The threads that fetch stripes ahead of their readers, and the bound on what they may hold. */
#include "data/readahead/readahead_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/threads/thread.h"
#include "cluster/placement.h"
#include "data/stripes/stripe_io.h"

#define THREADS_DEFAULT 4U
#define MAX_DEFAULT     ((size_t)128 << 20)
#define WINDOW_DEFAULT  8U
#define KEEP_WARM       ((size_t)32 << 20)
#define FETCHER_PAUSE   (500 * MFS_MSEC)

void mfs_fetch_put(struct mfs_fetch *f)
{
    struct mfs_readahead_pool *pool = f->pool;

    if (--f->refs)
        return;
    if (!f->straight) {
        assert(pool->bytes >= f->cap);
        pool->bytes -= f->cap;
        mfs_bufs_put(pool->bufs, f->mem, f->cap);
    }
    free(f);
}

void mfs_fetch_drop(struct mfs_fetch *f)
{
    struct mfs_readahead_pool *pool = f->pool;

    if (!f->ra)
        return;
    TAILQ_REMOVE(&f->ra->fetches, f, in_ra);
    f->ra = NULL;
    if (f->state == MFS_FETCH_READY && !f->straight)
        TAILQ_REMOVE(&pool->ready, f, link);
    if (f->queued) {
        TAILQ_REMOVE(&pool->waiting, f, link);
        f->queued = false;
        assert(f->refs > 0);
        f->refs--;
    }
    pthread_cond_broadcast(&pool->ended);
    mfs_fetch_put(f);
}

/* Makes room for a buffer by dropping what was fetched longest ago, of any handle: a handle that
 * stays open and is not read any more must not keep others from reading ahead. */
static bool make_room(struct mfs_readahead_pool *pool, size_t need)
{
    while (pool->bytes + need > pool->opts.max_bytes && !TAILQ_EMPTY(&pool->ready))
        mfs_fetch_drop(TAILQ_FIRST(&pool->ready));
    return pool->bytes + need <= pool->opts.max_bytes;
}

static struct mfs_fetch *make(struct mfs_readahead *ra, uint32_t stripe, uint32_t len)
{
    struct mfs_readahead_pool *pool = ra->pool;
    struct mfs_fetch *f = calloc(1, sizeof *f);

    if (!f)
        return NULL;
    f->pool = pool;
    f->ra = ra;
    f->ino = ra->ino;
    f->stripe = stripe;
    f->part = mfs_placement_stripe(ra->ino, stripe, mfs_store_nparts(pool->store));
    f->len = len;
    f->refs = 2; /* the list's and the caller's */
    TAILQ_INSERT_TAIL(&ra->fetches, f, in_ra);
    return f;
}

struct mfs_fetch *mfs_fetch_new(struct mfs_readahead *ra, uint32_t stripe, uint32_t len)
{
    struct mfs_readahead_pool *pool = ra->pool;
    size_t cap = mfs_bufs_size(len, ra->stripe_size);
    struct mfs_fetch *f;
    char *mem = make_room(pool, cap) ? mfs_bufs_get(pool->bufs, cap) : NULL;

    f = mem ? make(ra, stripe, len) : NULL;
    if (!f) {
        if (mem)
            mfs_bufs_put(pool->bufs, mem, cap);
        return NULL;
    }
    f->mem = mem;
    f->cap = cap;
    pool->bytes += cap;
    return f;
}

struct mfs_fetch *mfs_fetch_new_straight(struct mfs_readahead *ra, uint32_t stripe, uint32_t len,
                                         char *to)
{
    struct mfs_fetch *f = make(ra, stripe, len);

    if (f) {
        f->mem = to;
        f->straight = true;
    }
    return f;
}

void mfs_fetch_queue(struct mfs_fetch *f)
{
    struct mfs_readahead_pool *pool = f->pool;
    struct mfs_fetch *at = f->in_turn ? TAILQ_FIRST(&pool->waiting) : NULL;

    f->refs++;
    f->queued = true;
    while (at && at->in_turn)
        at = TAILQ_NEXT(at, link);
    if (at)
        TAILQ_INSERT_BEFORE(at, f, link);
    else
        TAILQ_INSERT_TAIL(&pool->waiting, f, link);
    mfs_workers_attend(&pool->fetchers);
    mfs_workers_wake(&pool->fetchers);
}

/* A short one tells of the way there and back, but not of the link. */
static void complete(struct mfs_fetch *f, int rc, int64_t began)
{
    struct mfs_readahead_pool *pool = f->pool;
    int64_t now = mfs_clock_mono();

    if (!rc && f->len > pool->stripe_size / 2)
        mfs_links_took(&pool->links, f->part, now - began, now);
    mfs_links_end(&pool->links, f->part, f->len, now);
    if (!TAILQ_EMPTY(&pool->waiting))
        mfs_workers_wake(&pool->fetchers);
}

void mfs_fetch_run(struct mfs_fetch *f)
{
    struct mfs_readahead_pool *pool = f->pool;
    struct mfs_stripe_get get = {.ino = f->ino, .stripe = f->stripe, .len = f->len, .into = f->mem};
    int64_t now = mfs_clock_mono();
    int rc;

    if (f->queued) {
        TAILQ_REMOVE(&pool->waiting, f, link);
        f->queued = false;
        assert(f->refs > 0);
        f->refs--;
    }
    f->state = MFS_FETCH_COMING;
    mfs_links_begin(&pool->links, f->part, f->len, now);
    pthread_mutex_unlock(&pool->lock);
    rc = mfs_stripe_get(pool->store, &get, 1);
    pthread_mutex_lock(&pool->lock);
    complete(f, rc, now);
    f->state = rc ? MFS_FETCH_FAILED : MFS_FETCH_READY;
    f->rc = rc;
    if (f->ra && rc)
        mfs_fetch_drop(f);
    else if (f->ra && !f->straight)
        TAILQ_INSERT_TAIL(&pool->ready, f, link);
    pthread_cond_broadcast(&pool->ended);
}

/* The first whose partition and link have room for more on the way. */
static struct mfs_fetch *next_waiting(struct mfs_readahead_pool *pool, int64_t now)
{
    struct mfs_fetch *f;

    pool->fetchers.base = mfs_links_width(&pool->links);
    if (TAILQ_EMPTY(&pool->waiting) || !mfs_workers_may_begin(&pool->fetchers, now))
        return NULL;
    mfs_links_follow(&pool->links);
    TAILQ_FOREACH(f, &pool->waiting, link)
    {
        if (mfs_links_room(&pool->links, f->part, now))
            break;
    }
    return f;
}

static void *fetcher(void *arg)
{
    struct mfs_readahead_pool *pool = arg;
    uint32_t number;

    pthread_mutex_lock(&pool->lock);
    number = mfs_workers_enter(&pool->fetchers);
    while (!pool->stop) {
        int64_t now = mfs_clock_mono();
        struct mfs_fetch *f = next_waiting(pool, now);

        if (!f) {
            bool nothing = TAILQ_EMPTY(&pool->waiting);

            /* Soon those at work may count no more. */
            mfs_workers_wait(&pool->fetchers, nothing ? FETCHER_PAUSE : MFS_WORKERS_LONG, nothing);
            continue;
        }
        f->refs++;
        mfs_workers_begin(&pool->fetchers, number, now);
        mfs_fetch_run(f);
        mfs_workers_end(&pool->fetchers, number, mfs_clock_mono());
        mfs_fetch_put(f);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static int start_threads(struct mfs_readahead_pool *pool)
{
    int rc;

    pthread_mutex_lock(&pool->lock);
    pool->fetchers = (struct mfs_workers){.name = "mfs-fetch",
                                          .run = fetcher,
                                          .arg = pool,
                                          .lock = &pool->lock,
                                          .base = pool->opts.threads};
    rc = mfs_workers_start(&pool->fetchers);
    pthread_mutex_unlock(&pool->lock);
    return rc;
}

int mfs_readahead_pool_create(struct mfs_readahead_pool **out, struct mfs_store *store,
                              const struct mfs_readahead_opts *opts)
{
    struct mfs_readahead_pool *pool = calloc(1, sizeof *pool);
    struct mfs_readahead_opts *o;
    size_t keep;
    int rc = -ENOMEM;

    if (!pool)
        return rc;
    o = &pool->opts;
    if (opts)
        *o = *opts;
    o->threads = o->threads ? o->threads : THREADS_DEFAULT;
    o->max_bytes = o->max_bytes ? o->max_bytes : MAX_DEFAULT;
    o->window = o->window ? o->window : WINDOW_DEFAULT;
    pool->store = store;
    pool->stripe_size = mfs_store_stripe_size(store);
    pthread_mutex_init(&pool->lock, NULL);
    mfs_cond_init(&pool->ended);
    TAILQ_INIT(&pool->waiting);
    TAILQ_INIT(&pool->ready);
    keep = o->max_bytes < KEEP_WARM ? o->max_bytes : KEEP_WARM;
    if (!mfs_links_init(&pool->links, store, o->threads) &&
        !mfs_bufs_create(&pool->bufs, pool->stripe_size, keep))
        rc = start_threads(pool);
    if (rc) {
        mfs_readahead_pool_destroy(pool);
        pool = NULL;
    }
    *out = pool;
    return rc;
}

void mfs_readahead_pool_destroy(struct mfs_readahead_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_mutex_unlock(&pool->lock);
    mfs_workers_fini(&pool->fetchers);
    mfs_bufs_destroy(pool->bufs);
    mfs_links_fini(&pool->links);
    pthread_cond_destroy(&pool->ended);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
