#include "meta/coherence/giveback.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/coherence/notices_impl.h"
#include "meta/coherence/shown.h"
#include "meta/session/unregistered_opens.h"

#define CALM    (2 * MFS_SEC) /* without a notice of another file: all begins anew */
#define FIRST   8U            /* files, at the second file's notice */
#define MOST    2048U
#define FASTER  4U
#define DIRS    16
#define KEEPERS 256U
#define CALL    512U /* inodes in one command: bounds the time that it holds up the partition */

struct mfs_giveback {
    pthread_mutex_t mutex; /* a leaf; guards what follows */
    struct of_dir {
        uint64_t dir, ino;
        int64_t at; /* mono: the last notice of another file than before, which is ino; 0: none */
        unsigned batch;
        bool due;
    } dirs[DIRS];
    struct shard_right {
        uint64_t dir;
        uint32_t part;
    } keepers[KEEPERS];
    unsigned nkeepers;
};

/* A lease at a partition, or the keeper's right of a directory's shard there. */
struct item {
    uint64_t id;
    uint32_t part;
    bool keeper, failed;
};

struct batch {
    struct mfs_meta *meta;
    uint64_t sid; /* in whose name they are given back */
    struct item *items;
    size_t n, cap;
};

struct mfs_giveback *mfs_giveback_create(void)
{
    struct mfs_giveback *g = calloc(1, sizeof *g);

    if (g)
        pthread_mutex_init(&g->mutex, NULL);
    return g;
}

void mfs_giveback_destroy(struct mfs_giveback *g)
{
    if (!g)
        return;
    pthread_mutex_destroy(&g->mutex);
    free(g);
}

/* --- what is due ---------------------------------------------------------------------------- */

static struct of_dir *find_or_oldest(struct mfs_giveback *g, uint64_t dir)
{
    struct of_dir *o = &g->dirs[0];

    for (size_t i = 0; i < DIRS; i++) {
        if (g->dirs[i].at && g->dirs[i].dir == dir)
            return &g->dirs[i];
        o = g->dirs[i].at < o->at ? &g->dirs[i] : o;
    }
    *o = (struct of_dir){.dir = dir};
    return o;
}

static unsigned next_batch(const struct of_dir *o, int64_t now)
{
    if (!o->at || now - o->at > CALM)
        return 0;
    if (!o->batch)
        return FIRST;
    return FASTER * o->batch < MOST ? FASTER * o->batch : MOST;
}

void mfs_giveback_revoked(struct mfs_meta *meta, uint64_t ino)
{
    struct mfs_giveback *g = meta->giveback;
    uint64_t dir = mfs_filecache_revoke_idle(meta->files, ino, meta->limits.idle_lease);
    struct of_dir *o;
    int64_t now;
    bool due;

    if (!dir)
        return;
    now = mfs_clock_mono();
    pthread_mutex_lock(&g->mutex);
    o = find_or_oldest(g, dir);
    due = ino != o->ino && !o->due;
    if (due)
        o->batch = next_batch(o, now);
    due = due && o->batch;
    o->due = o->due || due;
    if (ino != o->ino)
        o->at = now;
    o->ino = ino;
    pthread_mutex_unlock(&g->mutex);
    if (due)
        mfs_ticker_hurry(&meta->giveback_ticker);
}

void mfs_giveback_keeper(struct mfs_meta *meta, uint64_t dir, uint32_t part)
{
    struct mfs_giveback *g = meta->giveback;

    pthread_mutex_lock(&g->mutex);
    if (g->nkeepers < KEEPERS)
        g->keepers[g->nkeepers++] = (struct shard_right){dir, part};
    pthread_mutex_unlock(&g->mutex);
    mfs_ticker_hurry(&meta->giveback_ticker);
}

static bool take_due(struct mfs_giveback *g, uint64_t *dir, unsigned *most)
{
    bool found = false;

    pthread_mutex_lock(&g->mutex);
    for (size_t i = 0; i < DIRS && !found; i++) {
        found = g->dirs[i].due;
        g->dirs[i].due = false;
        *dir = g->dirs[i].dir;
        *most = g->dirs[i].batch;
    }
    pthread_mutex_unlock(&g->mutex);
    return found;
}

static unsigned take_keepers(struct mfs_giveback *g, struct shard_right out[KEEPERS])
{
    unsigned n;

    pthread_mutex_lock(&g->mutex);
    n = g->nkeepers;
    g->nkeepers = 0;
    memcpy(out, g->keepers, n * sizeof *out);
    pthread_mutex_unlock(&g->mutex);
    return n;
}

/* --- what may be given back ----------------------------------------------------------------- */

static bool add(struct batch *b, uint64_t id, uint32_t part, bool keeper)
{
    size_t cap = b->cap ? 2 * b->cap : 64;
    struct item *items = b->n == b->cap ? realloc(b->items, cap * sizeof *items) : b->items;

    if (!items)
        return false;
    if (b->n == b->cap)
        b->cap = cap;
    b->items = items;
    b->items[b->n++] = (struct item){.id = id, .part = part, .keeper = keeper};
    return true;
}

/* The partitions that know of the lease: the inode's home, and where its name is. The latter keeps
 * it if there is no memory for it; it is known here no more. */
static bool take_name(void *arg, uint64_t ino, uint64_t dir, const char *name, size_t len)
{
    struct batch *b = arg;
    uint32_t home = mfs_placement_home(ino),
             part = mfs_placement_entry(dir, name, len, b->meta->nparts);

    if (!b->n || b->items[b->n - 1].id != ino)
        add(b, ino, home, false);
    if (!b->n || b->items[b->n - 1].id != ino)
        return false;
    if (part != home)
        add(b, ino, part, false);
    return true;
}

/* What becomes of a recall. Whoever is last frees it. */
struct recall {
    atomic_uint said;
};

static void recalled(void *arg)
{
    struct recall *r = arg;

    if (atomic_fetch_add(&r->said, 1) > 0)
        free(r);
}

/* Does the kernel use nothing of the file, from now on? It is asked, but not waited for. */
static bool is_unused(struct mfs_meta *meta, uint64_t ino)
{
    struct recall *r;
    bool done;

    if (!mfs_shown_is_over(meta->notices->shown, ino))
        return false;
    if (!meta->opts.recalled)
        return true;
    r = calloc(1, sizeof *r);
    if (!r)
        return false;
    meta->opts.recalled(meta->opts.arg, ino, recalled, r);
    done = atomic_fetch_add(&r->said, 1) > 0;
    if (done)
        free(r);
    return done;
}

static bool any_ails(const struct item *items, size_t n, const unsigned char *ailing, size_t bytes)
{
    for (size_t i = 0; i < n; i++) {
        if (mfs_bits_test(ailing, bytes, items[i].part))
            return true;
    }
    return false;
}

/* Not of files that stay because of the lease alone, nor of those that are shown; nor what a
 * partition that does not answer has to be told. */
static void sort_out(struct batch *b)
{
    unsigned char ailing[(MFS_PARTITIONS_MAX + 7) / 8];
    size_t kept = 0;

    mfs_store_ailing(b->meta->store, ailing);

    for (size_t i = 0, next; i < b->n; i = next) {
        uint64_t ino = b->items[i].id;
        bool may;

        for (next = i + 1; next < b->n && b->items[next].id == ino;)
            next++;
        may = !any_ails(&b->items[i], next - i, ailing, sizeof ailing) &&
              mfs_unregistered_none(b->meta->unregistered, ino) && is_unused(b->meta, ino);
        for (size_t k = i; k < next && may; k++)
            b->items[kept++] = b->items[k];
        if (!may)
            mfs_filecache_given(b->meta->files, ino);
    }
    b->n = kept;
}

/* --- giving back ---------------------------------------------------------------------------- */

static int by_part(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    return x->keeper - y->keeper;
}

static int by_id(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->keeper != y->keeper)
        return x->keeper ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

/* What one partition is told, of the items from `first` on. */
struct group {
    struct mfs_args args;
    size_t first, n;
    char ids[CALL * 8];
};

static size_t fill(struct group *g, const struct batch *b, size_t first,
                   const struct mfs_ino_arg *sid)
{
    const struct item *from = &b->items[first];
    size_t files = 0;

    *g = (struct group){.first = first};
    for (; g->n < CALL && first + g->n < b->n && from[g->n].part == from->part; g->n++) {
        mfs_put_be64(g->ids + 8 * g->n, from[g->n].id);
        files += !from[g->n].keeper;
    }
    mfs_args_init(&g->args, "mfs_unlease");
    mfs_args_bin(&g->args, sid->b, sizeof sid->b);
    mfs_args_bin(&g->args, g->ids, 8 * files);
    mfs_args_bin(&g->args, g->ids + 8 * files, 8 * (g->n - files));
    return g->n;
}

static void run_groups(struct batch *b, struct group *groups, struct mfs_cmd *cmds, size_t n)
{
    mfs_store_exec(b->meta->store, cmds, n);
    for (size_t k = 0; k < n; k++) {
        for (size_t i = 0; i < groups[k].n; i++)
            b->items[groups[k].first + i].failed = mfs_outcome_is_unknown(cmds[k].rc);
    }
    mfs_cmds_fini(cmds, n);
}

static void end_one(struct mfs_meta *meta, const struct item *i, bool lost)
{
    if (i->keeper && lost)
        mfs_shards_lost(meta->shards, i->id, i->part);
    else if (i->keeper)
        mfs_shards_given(meta->shards, i->id, i->part);
    else if (lost)
        mfs_filecache_lost(meta->files, i->id);
    else
        mfs_filecache_given(meta->files, i->id);
}

/* A command whose answer was lost may be executed later, when the lease has been taken anew: so no
 * answer about such a file, or shard, is kept for as long as the session lives. */
static void end(struct batch *b)
{
    bool same_session = b->sid == b->meta->sid;
    size_t lost = 0;

    qsort(b->items, b->n, sizeof *b->items, by_id);
    for (size_t i = 0, next; i < b->n; i = next) {
        const struct item *first = &b->items[i];
        bool failed = false;

        for (next = i; next < b->n && b->items[next].id == first->id &&
                       b->items[next].keeper == first->keeper && (!first->keeper || next == i);
             next++)
            failed = failed || (same_session && b->items[next].failed);
        lost += failed;
        end_one(b->meta, first, failed);
    }
    if (lost)
        mfs_warn("meta", "%zu leases could not be given back: they are not taken again", lost);
}

static void send(struct batch *b)
{
    struct mfs_ino_arg sid = mfs_ino_arg(b->sid);
    size_t n = 0, most = b->n < b->meta->nparts ? b->n : b->meta->nparts + b->n / CALL;
    struct mfs_cmd *cmds = malloc((most + 1) * sizeof *cmds);
    struct group *groups = malloc((most + 1) * sizeof *groups);

    qsort(b->items, b->n, sizeof *b->items, by_part);
    for (size_t done = 0; cmds && groups && done < b->n; n++) {
        done += fill(&groups[n], b, done, &sid);
        cmds[n] = mfs_args_cmd(&groups[n].args, b->items[groups[n].first].part);
    }
    if (n)
        run_groups(b, groups, cmds, n);
    end(b); /* without memory they are still known there, which does no harm */
    free(cmds);
    free(groups);
}

static void add_files(struct batch *b, uint64_t dir, unsigned most)
{
    mfs_filecache_give(b->meta->files, dir, b->meta->limits.idle_lease, most, take_name, b);
}

static void add_keepers(struct batch *b, const struct shard_right *list, unsigned n)
{
    unsigned char ailing[(MFS_PARTITIONS_MAX + 7) / 8];

    mfs_store_ailing(b->meta->store, ailing);
    for (unsigned i = 0; i < n; i++) {
        if (!mfs_bits_test(ailing, sizeof ailing, list[i].part) &&
            add(b, list[i].dir, list[i].part, true))
            mfs_shards_giving(b->meta->shards, list[i].dir, list[i].part);
    }
}

void mfs_giveback_flush(struct mfs_meta *meta)
{
    struct batch b = {.meta = meta, .sid = meta->sid};
    struct shard_right keepers[KEEPERS];
    unsigned n = take_keepers(meta->giveback, keepers), most;
    uint64_t dir;

    for (size_t i = 0; i < DIRS && take_due(meta->giveback, &dir, &most); i++)
        add_files(&b, dir, most);
    sort_out(&b);
    add_keepers(&b, keepers, n);
    if (b.n)
        send(&b);
    free(b.items);
}
