/* A store's life: options, tables, figures. */
#include "store/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <utlist.h>

#include "base/ino.h"
#include "base/log.h"
#include "base/threads/thread.h"

#define DEFAULT_TIMEOUT_NS (30 * MFS_SEC)
#define DEFAULT_IDLE       8
#define DEFAULT_IDLE_NS    (30 * MFS_SEC)
#define LEAST_IDLE_MOST    64U
#define COMPLAIN_NS        (1 * MFS_SEC)
#define SLOW               (100 * MFS_MSEC)

/* Half of the descriptors that the process may have: calls under way, posted commands and the rest
 * of the client need some, too. */
static uint32_t default_idle_most(void)
{
    struct rlimit r;
    rlim_t half = getrlimit(RLIMIT_NOFILE, &r) ? 0 : r.rlim_cur / 2;

    if (half < LEAST_IDLE_MOST)
        return LEAST_IDLE_MOST;
    return half < INT32_MAX ? (uint32_t)half : INT32_MAX;
}

static struct mfs_store_opts with_defaults(const struct mfs_store_opts *opts)
{
    struct mfs_store_opts o = *opts;

    if (o.io_timeout <= 0)
        o.io_timeout = DEFAULT_TIMEOUT_NS;
    if (o.table_wait < 0)
        o.table_wait = 0;
    if (o.fence_wait <= 0)
        o.fence_wait = o.io_timeout;
    if (o.full_wait < 0)
        o.full_wait = 0;
    if (!o.idle_per_part)
        o.idle_per_part = DEFAULT_IDLE;
    if (!o.idle_most)
        o.idle_most = default_idle_most();
    if (o.idle_time <= 0)
        o.idle_time = DEFAULT_IDLE_NS;
    return o;
}

static void note_replicas(struct mfs_store *store, const struct mfs_table *table)
{
    atomic_store(&store->replicated, table->replicated);
    atomic_store(&store->failovers, table->failovers);
}

/* Under whose node what goes to a partition counts. store->lock is held, or nobody else has it. */
static void note_nodes(struct mfs_store *store, const struct mfs_table *table)
{
    for (uint32_t i = 0; i < store->nparts; i++) {
        bool same = i > 0 && table->part[i].node == table->part[i - 1].node;

        store->part[i].series = same ? store->part[i - 1].series
                                     : mfs_store_figures_node(&store->figures, table->part[i].node);
    }
}

int mfs_store_create(struct mfs_store **out, struct mfs_table *table,
                     const struct mfs_store_opts *opts)
{
    struct mfs_store *store = calloc(1, sizeof *store);
    int rc = mfs_table_check(table);

    *out = NULL;
    if (!store || rc) {
        free(store);
        free(table);
        return rc ? rc : -ENOMEM;
    }
    store->table = table;
    store->nparts = table->nparts;
    store->stripe_size = table->stripe_size;
    store->opts = with_defaults(opts);
    pthread_mutex_init(&store->lock, NULL);
    rc = mfs_cond_init(&store->changed);
    if (!rc)
        rc = mfs_store_figures_init(&store->figures, opts->metrics);
    if (rc)
        goto out;
    note_replicas(store, table);
    rc = -ENOMEM;
    store->part = calloc(store->nparts, sizeof *store->part);
    if (store->part)
        note_nodes(store, table);
    if (store->part)
        rc = mfs_post_create(&store->post, store);
out:
    if (rc)
        mfs_store_destroy(store);
    else
        *out = store;
    return rc;
}

void mfs_store_destroy(struct mfs_store *store)
{
    if (!store)
        return;
    mfs_post_destroy(store->post);
    for (uint32_t i = 0; store->part && i < store->nparts; i++)
        mfs_pool_close_all(store->part[i].idle);
    pthread_cond_destroy(&store->changed);
    pthread_mutex_destroy(&store->lock);
    free(store->part);
    mfs_store_figures_fini(&store->figures);
    free(store->lost);
    free(store->table);
    free(store);
}

uint32_t mfs_store_nparts(const struct mfs_store *store)
{
    return store->nparts;
}

uint32_t mfs_store_stripe_size(const struct mfs_store *store)
{
    return store->stripe_size;
}

uint32_t mfs_store_stripe_of(const struct mfs_store *store, uint64_t ino)
{
    return mfs_ino_stripe_size(ino, store->stripe_size);
}

uint32_t mfs_store_node(const struct mfs_store *store)
{
    return store->opts.node;
}

uint64_t mfs_store_epoch(struct mfs_store *store)
{
    uint64_t epoch;

    pthread_mutex_lock(&store->lock);
    epoch = store->table->epoch;
    pthread_mutex_unlock(&store->lock);
    return epoch;
}

uint64_t mfs_store_nodes(struct mfs_store *store, uint32_t *nodes)
{
    uint64_t epoch;

    pthread_mutex_lock(&store->lock);
    for (uint32_t i = 0; i < store->nparts; i++)
        nodes[i] = store->table->part[i].node;
    epoch = store->table->epoch;
    pthread_mutex_unlock(&store->lock);
    return epoch;
}

static bool same_shape(const struct mfs_table *a, const struct mfs_table *b)
{
    return a->nparts == b->nparts && a->stripe_size == b->stripe_size &&
           strcmp(a->name, b->name) == 0;
}

static bool same_address(const struct mfs_partition *a, const struct mfs_partition *b)
{
    return a->node == b->node && a->port == b->port && !strcmp(a->host, b->host) &&
           !strcmp(a->unix_path, b->unix_path) && !strcmp(a->password, b->password);
}

/* Takes the idle connections of partitions that are elsewhere in the new table. */
static struct mfs_channel *detach_moved(struct mfs_store *store, const struct mfs_table *table)
{
    struct mfs_channel *drop = NULL;

    for (uint32_t i = 0; i < store->nparts; i++) {
        struct mfs_part *part = &store->part[i];
        struct mfs_channel *conn;

        if (same_address(&store->table->part[i], &table->part[i]))
            continue;
        part->gen++;
        if (store->table->part[i].era != table->part[i].era)
            mfs_pool_break(part);
        part->down_since = part->gone_since = part->silent_until = 0;
        mfs_fence_lift(store, i);
        while ((conn = mfs_idle_pop(store, part))) {
            conn->next = drop;
            drop = conn;
        }
    }
    return drop;
}

uint64_t mfs_store_failovers(const struct mfs_store *store)
{
    return atomic_load(&store->failovers);
}

uint64_t mfs_store_resets(const struct mfs_store *store)
{
    return atomic_load(&store->failovers) + atomic_load(&store->lapses);
}

static void note_lost(struct mfs_store *store, int64_t at, const struct mfs_lost_node *lost,
                      size_t n)
{
    struct mfs_lost_node *copy = n ? calloc(n, sizeof *copy) : NULL, *old;

    if (copy)
        memcpy(copy, lost, n * sizeof *copy);
    pthread_mutex_lock(&store->lock);
    old = store->lost;
    store->lost = copy;
    store->nlost = copy ? n : 0; /* without memory they are waited for */
    store->lost_at = at;
    pthread_mutex_unlock(&store->lock);
    free(old);
}

/* store->lock is held. */
static void tell_watches(struct mfs_store *store)
{
    struct mfs_store_watch *w;

    DL_FOREACH(store->watches, w)
    w->fn(w->arg);
}

void mfs_store_watch(struct mfs_store *store, struct mfs_store_watch *w)
{
    pthread_mutex_lock(&store->lock);
    assert(!w->on);
    DL_APPEND(store->watches, w);
    w->on = true;
    pthread_mutex_unlock(&store->lock);
}

void mfs_store_unwatch(struct mfs_store *store, struct mfs_store_watch *w)
{
    pthread_mutex_lock(&store->lock);
    if (w->on)
        DL_DELETE(store->watches, w);
    w->on = false;
    pthread_mutex_unlock(&store->lock);
}

void mfs_store_set_contact(struct mfs_store *store, int64_t at, const struct mfs_lost_node *lost,
                           size_t n)
{
    /* By when the answer has come, as the question may have been on its way all the time. */
    bool lapsed = mfs_clock_mono() - atomic_load(&store->contact_at) >= MFS_TRUST;

    if (lapsed)
        atomic_fetch_add(&store->lapses, 1);
    note_lost(store, at, lost, n);
    atomic_store(&store->contact_at, at);
    if (lapsed) {
        pthread_mutex_lock(&store->lock);
        tell_watches(store);
        pthread_mutex_unlock(&store->lock);
    }
}

bool mfs_store_lost(struct mfs_store *store, uint32_t node, int64_t at)
{
    bool found = false;

    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->nlost && node != MFS_NO_NODE; i++)
        found = found || store->lost[i].node == node;
    found = found && at - store->lost_at < MFS_TRUST;
    pthread_mutex_unlock(&store->lock);
    return found;
}

bool mfs_store_in_contact(const struct mfs_store *store, int64_t within)
{
    return mfs_store_contact_left(store, within) > 0;
}

int64_t mfs_store_contact_left(const struct mfs_store *store, int64_t within)
{
    if (!atomic_load(&store->replicated))
        return INT64_MAX;
    return atomic_load(&store->contact_at) + within - mfs_clock_mono();
}

bool mfs_store_is_replicated(const struct mfs_store *store)
{
    return atomic_load(&store->replicated);
}

uint32_t mfs_store_era(struct mfs_store *store, uint32_t part)
{
    uint32_t era;

    assert(part < store->nparts);
    pthread_mutex_lock(&store->lock);
    era = store->table->part[part].era;
    pthread_mutex_unlock(&store->lock);
    return era;
}

uint32_t mfs_store_node_of(struct mfs_store *store, uint32_t part)
{
    uint32_t node;

    pthread_mutex_lock(&store->lock);
    node = store->table->part[part].node;
    pthread_mutex_unlock(&store->lock);
    return node;
}

static int64_t ago(int64_t now, int64_t at)
{
    return at == 0 ? 0 : now > at ? now - at : 1;
}

void mfs_store_parts(struct mfs_store *store, struct mfs_store_part *parts)
{
    int64_t now = mfs_clock_mono();

    pthread_mutex_lock(&store->lock);
    for (uint32_t i = 0; i < store->nparts; i++) {
        const struct mfs_part *p = &store->part[i];
        int64_t least = p->seen.least;

        if (p->seen.least_before > 0 && p->seen.least_before < least)
            least = p->seen.least_before;
        parts[i] =
            (struct mfs_store_part){.node = store->table->part[i].node,
                                    .waiting = p->seen.waiting,
                                    .silent = p->seen.waiting > 0 ? ago(now, p->seen.since) : 0,
                                    .trips = p->seen.trips,
                                    .ns = p->seen.ns,
                                    .least = least,
                                    .down = ago(now, p->down_since),
                                    .full = ago(now, p->seen.full_at),
                                    .fenced = p->fenced};
    }
    pthread_mutex_unlock(&store->lock);
}

bool mfs_store_hangs(struct mfs_store *store, uint32_t part, int64_t ns)
{
    const struct mfs_part *p = &store->part[part];
    int64_t now = mfs_clock_mono();
    bool hangs;

    assert(part < store->nparts);
    pthread_mutex_lock(&store->lock);
    hangs = p->silent_until > now || ago(now, p->down_since) > ns ||
            (p->seen.waiting > 0 && now - p->seen.since > ns);
    pthread_mutex_unlock(&store->lock);
    return hangs;
}

bool mfs_store_node_full(struct mfs_store *store, uint32_t node, int64_t within)
{
    int64_t since = mfs_clock_mono() - within;
    bool full = false;

    pthread_mutex_lock(&store->lock);
    for (uint32_t i = 0; i < store->nparts && !full; i++) {
        int64_t at = store->part[i].seen.full_at;

        full = store->table->part[i].node == node && at != 0 && at >= since;
    }
    pthread_mutex_unlock(&store->lock);
    return full;
}

static bool ails(const struct mfs_part *p, int64_t now)
{
    return p->down_since || p->fenced || p->silent_until > now ||
           (p->seen.waiting > 0 && now - p->seen.since > SLOW);
}

void mfs_store_ending(struct mfs_store *store)
{
    atomic_store_explicit(&store->ending, true, memory_order_release);
}

size_t mfs_store_ailing(struct mfs_store *store, unsigned char *bits)
{
    int64_t now = mfs_clock_mono();
    size_t n = 0;

    memset(bits, 0, (store->nparts + 7) / 8);
    pthread_mutex_lock(&store->lock);
    for (uint32_t i = 0; i < store->nparts; i++) {
        if (!ails(&store->part[i], now))
            continue;
        bits[i / 8] |= (unsigned char)(1U << (i % 8));
        n++;
    }
    pthread_mutex_unlock(&store->lock);
    return n;
}

int mfs_store_set_table(struct mfs_store *store, struct mfs_table *table)
{
    struct mfs_channel *drop = NULL;
    struct mfs_table *old = table; /* the one to be freed */
    int rc = -EINVAL;

    if (mfs_table_check(table) == 0) {
        pthread_mutex_lock(&store->lock);
        if (!same_shape(table, store->table)) {
            rc = -EINVAL;
        } else if (table->epoch <= store->table->epoch) {
            rc = -ESTALE;
        } else {
            rc = 0;
            note_replicas(store, table);
            note_nodes(store, table);
            drop = detach_moved(store, table);
            old = store->table;
            store->table = table;
            pthread_cond_broadcast(&store->changed);
            tell_watches(store);
        }
        pthread_mutex_unlock(&store->lock);
    }
    mfs_pool_close_all(drop);
    free(old);
    return rc;
}

int64_t mfs_store_full_wait(struct mfs_store *store)
{
    bool growing;

    pthread_mutex_lock(&store->lock);
    growing = store->table->growing;
    pthread_mutex_unlock(&store->lock);
    return growing ? store->opts.full_wait : 0;
}

void mfs_store_stats(struct mfs_store *store, struct mfs_store_stats *stats)
{
    *stats = (struct mfs_store_stats){
        .round_trips = mfs_metric_value(store->figures.set, MFS_STORE_ROUND_TRIPS, 0),
        .commands = mfs_metric_value(store->figures.set, MFS_STORE_COMMANDS, 0),
        .bytes_out = mfs_metric_sum(store->figures.set, MFS_STORE_SENT),
        .bytes_in = mfs_metric_sum(store->figures.set, MFS_STORE_RECEIVED)};
}

void mfs_store_set_fault(struct mfs_store *store, mfs_store_fault_fn *fn, void *arg)
{
    atomic_store(&store->fault_arg, arg);
    atomic_store(&store->fault, fn);
}

int mfs_store_fault(struct mfs_store *store, const struct mfs_cmd *cmd)
{
    mfs_store_fault_fn *fn = atomic_load(&store->fault);

    return fn ? fn(atomic_load(&store->fault_arg), cmd->part, cmd->argv, cmd->argc) : 0;
}

void mfs_store_complain(struct mfs_store *store, const struct mfs_cmd *cmd, const char *text)
{
    const struct mfs_arg *word = &cmd->argv[0];
    int64_t now = mfs_clock_mono();
    bool quiet;

    pthread_mutex_lock(&store->lock);
    quiet = store->complained && now - store->complained < COMPLAIN_NS;
    if (!quiet)
        store->complained = now;
    pthread_mutex_unlock(&store->lock);
    if (!quiet)
        mfs_warn("store", "partition %u: %.*s: %s", cmd->part, (int)word->len,
                 (const char *)word->p, text);
}
