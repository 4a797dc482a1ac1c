/* The life of a client's metadata: its session, what it remembers, its threads. */
#include "meta/cache/cache.h"
#include "meta/cache/contents.h"
#include "meta/cache/dirnames.h"
#include "meta/coherence/giveback.h"
#include "meta/coherence/notices.h"
#include "meta/deferred/deferred.h"
#include "meta/deferred/unknown_outcomes.h"
#include "meta/metrics.h"
#include "meta/session/session.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "cluster/trust.h"

#define SESSION_TTL       (20 * MFS_SEC)
#define CONTACT_INTERVAL  (100 * MFS_MSEC)
#define PARENTS_INTERVAL  (200 * MFS_MSEC)
#define CLOSES_INTERVAL   (200 * MFS_MSEC)
#define GIVEBACK_INTERVAL (5 * MFS_SEC) /* of the first call: all others are hurried */
#define CHORES_INTERVAL   (5 * MFS_SEC)
#define IDLE_LEASE        (1100 * MFS_MSEC) /* longer than the kernel uses what it is shown */
#define STALE_OPEN        (180 * MFS_SEC)   /* longer than the answer to an open may take */

static_assert(MFS_META_LEASE < SESSION_TTL, "the kernel forgets before others take us for dead");
static_assert(PARENTS_INTERVAL < MFS_META_PARENT_DELAY, "times of parents go out in time");
static_assert(CONTACT_INTERVAL + MFS_TRUST_KEPT < MFS_TRUST, "the kernel drops all in time");

static void free_meta(struct mfs_meta *meta)
{
    mfs_dircache_destroy(meta->dirs);
    mfs_dirnames_destroy(meta->dirnames);
    mfs_filecache_destroy(meta->files);
    mfs_contents_destroy(meta->contents);
    mfs_shards_destroy(meta->shards);
    mfs_parents_destroy(meta->parents);
    mfs_opens_destroy(meta->opens);
    mfs_giveback_destroy(meta->giveback);
    mfs_link_counts_destroy(meta->link_counts);
    mfs_settles_destroy(meta->settles);
    mfs_outcomes_destroy(meta->outcomes);
    mfs_reads_destroy(meta->reads);
    mfs_metric_set_destroy(meta->metrics);
    pthread_mutex_destroy(&meta->room.mutex);
    free(meta);
}

static void flush_later(void *arg)
{
    struct mfs_meta *meta = arg;

    mfs_closes_flush(meta);
    mfs_settles_flush(meta);
    mfs_link_counts_flush(meta);
}

static void tick_giveback(void *arg)
{
    mfs_giveback_flush(arg);
}

/* What the thread looks at may have changed, but for the passing of time. */
static void wake_contact(void *arg)
{
    struct mfs_meta *meta = arg;

    mfs_ticker_work(&meta->contact_ticker);
}

static int start_threads(struct mfs_meta *meta)
{
    int rc;

    mfs_store_watch(meta->store, &meta->contact_watch); /* before contact_ticker looks and rests */
    rc = mfs_ticker_start(&meta->session_ticker, "meta-session", meta->opts.session_ttl / 4,
                          mfs_session_tick, meta);
    if (!rc)
        rc = mfs_ticker_start_resting(&meta->contact_ticker, "meta-contact", CONTACT_INTERVAL,
                                      mfs_contact_tick, meta);
    if (!rc)
        rc = mfs_ticker_start_resting(&meta->parents_ticker, "meta-parents", PARENTS_INTERVAL,
                                      mfs_parents_flush, meta);
    if (!rc)
        rc = mfs_ticker_start_resting(&meta->closes_ticker, "meta-closes", CLOSES_INTERVAL,
                                      flush_later, meta);
    if (!rc)
        rc = mfs_ticker_start(&meta->chores_ticker, "meta-chores", CHORES_INTERVAL, mfs_chores_tick,
                              meta);
    return rc;
}

static void stop_threads(struct mfs_meta *meta)
{
    mfs_store_unwatch(meta->store, &meta->contact_watch);
    mfs_ticker_stop(&meta->chores_ticker);
    mfs_ticker_stop(&meta->closes_ticker);
    mfs_ticker_stop(&meta->parents_ticker);
    mfs_ticker_stop(&meta->contact_ticker);
    mfs_ticker_stop(&meta->session_ticker);
}

/* Others' notices hurry the thread that gives leases back: it is there before the first of them can
 * come, and until after the last. */
static int start_notices(struct mfs_meta *meta)
{
    int rc = mfs_ticker_start_resting(&meta->giveback_ticker, "meta-giveback", GIVEBACK_INTERVAL,
                                      tick_giveback, meta);

    return rc ? rc : mfs_notices_start(meta);
}

/* No thread of start_threads runs. */
static void stop_notices(struct mfs_meta *meta)
{
    mfs_notices_deafen(meta);
    mfs_ticker_stop(&meta->giveback_ticker);
    mfs_notices_stop(meta);
}

int mfs_meta_create(struct mfs_meta **out, struct mfs_store *store,
                    const struct mfs_meta_opts *opts)
{
    struct mfs_meta *meta = calloc(1, sizeof *meta);
    int rc = -ENOMEM;

    *out = NULL;
    if (!meta)
        return rc;
    pthread_mutex_init(&meta->room.mutex, NULL);
    meta->store = store;
    meta->forgotten.resets = meta->forgotten.resets_reported = mfs_store_resets(store);
    meta->forgotten.failovers = mfs_store_failovers(store);
    meta->opts = *opts;
    meta->contact_watch = (struct mfs_store_watch){.fn = wake_contact, .arg = meta};
    meta->limits = (struct mfs_meta_limits){.others_wait = 2 * MFS_SEC,
                                            .intent_seconds = 5,
                                            .holder_seconds = 10,
                                            .chores_ms = 4000,
                                            .stale_open = STALE_OPEN,
                                            .idle_lease = IDLE_LEASE,
                                            .step_max_age = MFS_STEP_MAX_AGE};
    if (!meta->opts.session_ttl)
        meta->opts.session_ttl = SESSION_TTL;
    meta->nparts = mfs_store_nparts(store);
    meta->stripe_size = mfs_store_stripe_size(store);
    meta->dirs = mfs_dircache_create();
    meta->dirnames = meta->opts.dir_names ? mfs_dirnames_create() : NULL;
    meta->files = mfs_filecache_create(meta->opts.files);
    meta->contents = mfs_contents_create(meta->opts.contents);
    meta->shards = mfs_shards_create(meta->opts.names);
    meta->parents = mfs_parents_create();
    meta->opens = mfs_opens_create();
    meta->giveback = mfs_giveback_create();
    meta->link_counts = mfs_link_counts_create();
    meta->settles = mfs_settles_create();
    meta->outcomes = mfs_outcomes_create();
    meta->reads = mfs_reads_create(meta);
    if (!meta->dirs || !meta->files || !meta->contents || !meta->shards || !meta->parents ||
        !meta->opens || !meta->giveback || !meta->link_counts || !meta->settles ||
        !meta->outcomes || !meta->reads)
        goto fail;
    rc = mfs_metric_set_create(&meta->metrics, opts->metrics, mfs_meta_metrics, MFS_META_METRICS);
    if (!rc)
        rc = mfs_session_start(meta);
    if (rc)
        goto fail;
    mfs_chores_begin(meta);
    rc = start_notices(meta);
    if (!rc)
        rc = start_threads(meta);
    if (rc) {
        stop_threads(meta);
        stop_notices(meta);
        mfs_session_end(meta);
        goto fail;
    }
    *out = meta;
    return 0;
fail:
    free_meta(meta);
    return rc;
}

void mfs_meta_destroy(struct mfs_meta *meta)
{
    if (!meta)
        return;
    stop_threads(meta);
    mfs_reads_stop(meta->reads); /* with what follows from them, which others have to be told */
    stop_notices(meta);
    mfs_parents_flush(meta);
    flush_later(meta);
    mfs_session_end(meta);
    free_meta(meta);
}

bool mfs_meta_search_wanted(struct mfs_meta *meta)
{
    return atomic_exchange(&meta->leftovers.search_wanted, false);
}

bool mfs_meta_a_name(struct mfs_meta *meta, uint64_t ino, uint64_t *parent, char *name)
{
    return mfs_filecache_a_name(meta->files, ino, parent, name);
}

uint64_t mfs_meta_session(const struct mfs_meta *meta)
{
    return meta->sid;
}
