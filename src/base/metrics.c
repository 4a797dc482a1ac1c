/* The values of a set lie in SHARDS copies, each a run of cells of its own cache lines: a thread
 * counts in the copy that it got when it first counted anything, round robin, so that threads which
 * run at the same time seldom meet in a cell. A counter or gauge takes one cell per series, a
 * histogram MFS_METRIC_BUCKETS, one for the sum of ns and one for the longest. A gauge goes down by
 * wrapping round: the sum over all copies is right all the same. */
#include "base/metrics.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics_impl.h"
#include "base/text.h"

#define SHARDS     8U
#define CACHE_LINE 64U
#define USEC       1000U /* ns */

static_assert((SHARDS & (SHARDS - 1)) == 0, "a thread's copy is found with a mask");

/* ---- the registry ---------------------------------------------------------------------------- */

struct mfs_metrics *mfs_metrics_create(void)
{
    struct mfs_metrics *m = calloc(1, sizeof *m);

    if (m)
        pthread_mutex_init(&m->lock, NULL);
    return m;
}

void mfs_metrics_destroy(struct mfs_metrics *m)
{
    if (!m)
        return;
    assert(!m->first);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static void enlist(struct mfs_metrics *m, struct mfs_metric_set *set)
{
    struct mfs_metric_set **at;

    pthread_mutex_lock(&m->lock);
    for (at = &m->first; *at; at = &(*at)->next)
        ;
    *at = set;
    pthread_mutex_unlock(&m->lock);
}

static void unlist(struct mfs_metrics *m, struct mfs_metric_set *set)
{
    struct mfs_metric_set **at;

    pthread_mutex_lock(&m->lock);
    for (at = &m->first; *at != set; at = &(*at)->next)
        assert(*at);
    *at = set->next;
    pthread_mutex_unlock(&m->lock);
}

/* ---- sets ------------------------------------------------------------------------------------ */

static unsigned count_series(const struct mfs_metric *m)
{
    return (m->label[0].name ? m->label[0].n : 1) * (m->label[1].name ? m->label[1].n : 1);
}

static bool ends(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n > m && !strcmp(text + n - m, end);
}

static bool well_named(const struct mfs_metric *m)
{
    return !strncmp(m->name, "memefs_", 7) && strlen(m->name) < MFS_METRIC_NAME_MAX &&
           (!m->help || strlen(m->help) < MFS_METRIC_HELP_MAX) &&
           ends(m->name, "_total") == (m->kind == MFS_METRIC_COUNTER) &&
           (m->kind != MFS_METRIC_HISTOGRAM || ends(m->name, "_seconds"));
}

static size_t lay_out(struct mfs_metric_set *set)
{
    const size_t line = CACHE_LINE / sizeof *set->cell;
    size_t cells = 0;

    for (unsigned i = 0; i < set->n; i++) {
        struct mfs_metric_place *p = &set->place[i];
        bool histogram = set->table[i].kind == MFS_METRIC_HISTOGRAM;

        *p = (struct mfs_metric_place){.first = (uint32_t)cells,
                                       .width = histogram ? MFS_METRIC_CELL_COUNT : 1,
                                       .series = count_series(&set->table[i])};
        cells += (size_t)p->series * p->width;
    }
    return (cells + line - 1) / line * line;
}

int mfs_metric_set_create(struct mfs_metric_set **out, struct mfs_metrics *registry,
                          const struct mfs_metric *table, unsigned n)
{
    struct mfs_metric_set *set = calloc(1, sizeof *set + n * sizeof *set->place);
    size_t bytes;

    *out = NULL;
    if (!set)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        if (!well_named(&table[i])) {
            free(set);
            return -EINVAL;
        }
    set->registry = registry;
    set->table = table;
    set->n = n;
    set->cells = lay_out(set);
    bytes = SHARDS * set->cells * sizeof *set->cell;
    set->cell = aligned_alloc(CACHE_LINE, bytes);
    if (!set->cell) {
        free(set);
        return -ENOMEM;
    }
    memset((void *)set->cell, 0, bytes);
    if (registry)
        enlist(registry, set);
    *out = set;
    return 0;
}

void mfs_metric_set_destroy(struct mfs_metric_set *set)
{
    if (!set)
        return;
    if (set->registry)
        unlist(set->registry, set);
    free((void *)set->cell);
    free(set);
}

void mfs_metric_name_series(struct mfs_metric_set *set, char *out, size_t n, const char *value)
{
    if (set->registry)
        pthread_mutex_lock(&set->registry->lock);
    mfs_text_copy(out, n, value);
    if (set->registry)
        pthread_mutex_unlock(&set->registry->lock);
}

/* ---- counting -------------------------------------------------------------------------------- */

static atomic_uint threads;
static _Thread_local unsigned mine; /* 0: none yet, else one more than its number */

/* Apart, so that what each call does needs no stack. */
__attribute__((noinline, cold)) static void choose_shard(void)
{
    mine = 1 + atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % SHARDS;
}

/* Which copy the calling thread counts in. */
static unsigned own_shard(void)
{
    if (!mine)
        choose_shard();
    return mine - 1;
}

static mfs_metric_cell *own_cell(struct mfs_metric_set *set, unsigned metric, unsigned series)
{
    const struct mfs_metric_place *p = &set->place[metric];

    assert(metric < set->n && series < p->series);
    return set->cell + own_shard() * set->cells + p->first + (size_t)series * p->width;
}

static void add(mfs_metric_cell *cell, uint64_t n)
{
    atomic_fetch_add_explicit(cell, n, memory_order_relaxed);
}

void mfs_metric_add(struct mfs_metric_set *set, unsigned metric, unsigned series, uint64_t n)
{
    if (!set)
        return;
    assert(set->table[metric].kind == MFS_METRIC_COUNTER);
    add(own_cell(set, metric, series), n);
}

void mfs_metric_change(struct mfs_metric_set *set, unsigned metric, unsigned series, int64_t by)
{
    if (!set)
        return;
    assert(set->table[metric].kind == MFS_METRIC_GAUGE);
    add(own_cell(set, metric, series), (uint64_t)by);
}

static void raise_to(mfs_metric_cell *cell, uint64_t n)
{
    uint64_t has = atomic_load_explicit(cell, memory_order_relaxed);

    while (has < n && !atomic_compare_exchange_weak_explicit(cell, &has, n, memory_order_relaxed,
                                                             memory_order_relaxed))
        ;
}

static unsigned bucket_of(uint64_t ns)
{
    uint64_t us = (ns + USEC - 1) / USEC;
    unsigned i = us > 1 ? 64U - (unsigned)__builtin_clzll(us - 1) : 0;

    return i < MFS_METRIC_BUCKETS - 1 ? i : MFS_METRIC_BUCKETS - 1;
}

void mfs_metric_observe(struct mfs_metric_set *set, unsigned metric, unsigned series, int64_t ns)
{
    uint64_t took = ns > 0 ? (uint64_t)ns : 0;
    mfs_metric_cell *cells;

    if (!set)
        return;
    assert(set->table[metric].kind == MFS_METRIC_HISTOGRAM);
    cells = own_cell(set, metric, series);
    add(cells + bucket_of(took), 1);
    add(cells + MFS_METRIC_CELL_SUM, took);
    raise_to(cells + MFS_METRIC_CELL_MAX, took);
}

/* ---- reading --------------------------------------------------------------------------------- */

size_t mfs_metric_cells(const struct mfs_metric_set *set)
{
    return SHARDS * set->cells;
}

void mfs_metric_totals(const struct mfs_metric_set *set, size_t first, size_t n, uint64_t *total)
{
    memset(total, 0, n * sizeof *total);
    for (unsigned k = 0; k < SHARDS; k++) {
        const mfs_metric_cell *cell = set->cell + k * set->cells + first;

        for (size_t i = 0; i < n; i++)
            total[i] += atomic_load_explicit(cell + i, memory_order_relaxed);
    }
}

uint64_t mfs_metric_most(const struct mfs_metric_set *set, size_t cell)
{
    uint64_t most = 0;

    for (unsigned k = 0; k < SHARDS; k++) {
        uint64_t has =
            atomic_load_explicit(set->cell + k * set->cells + cell, memory_order_relaxed);

        most = has > most ? has : most;
    }
    return most;
}

uint64_t mfs_metric_value(const struct mfs_metric_set *set, unsigned metric, unsigned series)
{
    const struct mfs_metric_place *p = &set->place[metric];
    uint32_t n = p->width > 1 ? MFS_METRIC_BUCKETS : 1;
    uint64_t total[MFS_METRIC_BUCKETS], sum = 0;

    assert(metric < set->n && series < p->series);
    mfs_metric_totals(set, p->first + (size_t)series * p->width, n, total);
    for (uint32_t i = 0; i < n; i++)
        sum += total[i];
    return sum;
}

uint64_t mfs_metric_sum(const struct mfs_metric_set *set, unsigned metric)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < set->place[metric].series; i++)
        sum += mfs_metric_value(set, metric, i);
    return sum;
}
