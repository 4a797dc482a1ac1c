/* Times of directories whose names came or went: merged here and sent in the background, so that a
 * create costs its directory's home nothing of its own. A program that reads the directory through
 * this client sees them already. */
#include "base/table.h"
#include "meta/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/trust.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/deferred/deferred.h"
#include "meta/session/session.h"

#define FLUSH_MAX    64 /* calls in one go */
#define FLUSH_ROUNDS 256
#define LINGER       MFS_SEC /* longer than attributes are kept, or on their way */

static_assert(LINGER > 2 * MFS_META_LEASE_TIMES, "no older times are shown again");

struct change {
    uint64_t ino;
    struct timespec at;
    int32_t seen; /* as mfs_parents_seen */
    int64_t sent; /* when it had arrived, by mfs_clock_mono; 0: not yet */
    UT_hash_handle hh;
};

struct mfs_parents {
    pthread_mutex_t mutex;
    struct change *changes; /* under mutex */
};

struct mfs_parents *mfs_parents_create(void)
{
    struct mfs_parents *p = calloc(1, sizeof *p);

    if (p)
        pthread_mutex_init(&p->mutex, NULL);
    return p;
}

void mfs_parents_destroy(struct mfs_parents *p)
{
    struct change *c, *next;

    if (!p)
        return;
    HASH_ITER(hh, p->changes, c, next)
    {
        HASH_DEL(p->changes, c);
        free(c);
    }
    pthread_mutex_destroy(&p->mutex);
    free(p);
}

static struct change *find(struct mfs_parents *p, uint64_t ino)
{
    struct change *c;

    HASH_FIND(hh, p->changes, &ino, sizeof ino, c);
    return c;
}

int32_t mfs_parents_seen(struct mfs_meta *meta, uint64_t dir)
{
    return mfs_contact_leases(meta, MFS_TRUST) ? mfs_dircache_times_set(meta->dirs, dir) : -1;
}

/* Has the one seen settings that the other one has not? They are counted modulo 65536. */
static bool seen_more(int32_t a, int32_t b)
{
    return a >= 0 && b >= 0 && (int16_t)(a - b) > 0;
}

/* Of two changes with a setting in between only the later one matters. */
static void note(struct change *c, struct timespec now, int32_t seen)
{
    if (seen_more(c->seen, seen))
        return;
    if (!seen_more(seen, c->seen) && mfs_timespec_cmp(now, c->at) <= 0)
        return;
    c->at = now;
    c->seen = seen;
    c->sent = 0;
}

void mfs_parents_touch(struct mfs_meta *meta, uint64_t dir, struct timespec now)
{
    struct mfs_parents *p = meta->parents;
    int32_t seen = mfs_parents_seen(meta, dir);
    struct change *c;

    pthread_mutex_lock(&p->mutex);
    c = find(p, dir);
    if (!c) {
        c = calloc(1, sizeof *c);
        if (c) {
            c->ino = dir;
            c->seen = seen;
            HASH_ADD(hh, p->changes, ino, sizeof c->ino, c);
            if (!c->hh.tbl) {
                free(c);
                c = NULL;
            }
        }
    }
    if (c)
        note(c, now, seen);
    pthread_mutex_unlock(&p->mutex);
    mfs_ticker_work(&meta->parents_ticker);
}

/* The same rule as parent_changed in partition/names/dir.c. */
static void merge(struct mfs_attr *attr, const struct change *c)
{
    bool set = attr->flags & MFS_RECORD_MTIME;
    bool newer = mfs_timespec_cmp(c->at, attr->ctime) > 0;

    if (seen_more((int32_t)attr->cuts, c->seen) || (set && c->seen < 0 && !newer))
        return;
    if (set || mfs_timespec_cmp(c->at, attr->mtime) > 0)
        attr->mtime = c->at;
    attr->flags &= ~MFS_RECORD_MTIME;
    if (newer)
        attr->ctime = c->at;
}

void mfs_parents_merge(struct mfs_meta *meta, struct mfs_attr *attr)
{
    struct mfs_parents *p = meta->parents;
    struct change *c;

    pthread_mutex_lock(&p->mutex);
    c = find(p, attr->ino);
    if (c)
        merge(attr, c);
    pthread_mutex_unlock(&p->mutex);
}

struct flush {
    struct {
        uint64_t ino;
        struct timespec at;
        int32_t seen;
        struct mfs_call call;
        struct mfs_ino_arg ino_arg;
        struct mfs_time_arg time_arg;
    } v[FLUSH_MAX];
    struct mfs_cmd cmds[FLUSH_MAX];
    size_t n;
};

static void collect(struct mfs_parents *p, struct flush *f)
{
    struct change *c, *next;

    f->n = 0;
    pthread_mutex_lock(&p->mutex);
    HASH_ITER(hh, p->changes, c, next)
    {
        if (c->sent)
            continue;
        if (f->n == FLUSH_MAX)
            break;
        f->v[f->n].ino = c->ino;
        f->v[f->n].seen = c->seen;
        f->v[f->n++].at = c->at;
    }
    pthread_mutex_unlock(&p->mutex);
}

/* Failures are not sent again: a directory's times are not worth a retry that may never end. */
static void mark_sent(struct mfs_parents *p, const struct flush *f)
{
    int64_t now = mfs_clock_mono();

    pthread_mutex_lock(&p->mutex);
    for (size_t i = 0; i < f->n; i++) {
        struct change *c = find(p, f->v[i].ino);

        if (c && c->seen == f->v[i].seen && mfs_timespec_cmp(c->at, f->v[i].at) == 0)
            c->sent = now;
    }
    pthread_mutex_unlock(&p->mutex);
}

/* What went out is merged on until no attributes are around that were fetched before. Returns
 * whether anything is left. */
static bool forget_old(struct mfs_parents *p)
{
    int64_t now = mfs_clock_mono();
    struct change *c, *next;
    bool left;

    pthread_mutex_lock(&p->mutex);
    HASH_ITER(hh, p->changes, c, next)
    {
        if (!c->sent || now - c->sent < LINGER)
            continue;
        HASH_DEL(p->changes, c);
        free(c);
    }
    left = p->changes != NULL;
    pthread_mutex_unlock(&p->mutex);
    return left;
}

static void send_flush(struct mfs_meta *meta, struct flush *f)
{
    for (size_t i = 0; i < f->n; i++) {
        struct mfs_call *c = &f->v[i].call;

        f->v[i].ino_arg = mfs_ino_arg(f->v[i].ino);
        f->v[i].time_arg = mfs_time_arg(f->v[i].at);
        mfs_call_command(c, "mfs_ptime");
        mfs_args_bin(&c->args, f->v[i].ino_arg.b, sizeof f->v[i].ino_arg.b);
        mfs_args_bin(&c->args, f->v[i].time_arg.b, sizeof f->v[i].time_arg.b);
        mfs_args_int(&c->args, f->v[i].seen);
        f->cmds[i] = mfs_args_cmd(&c->args, mfs_placement_home(f->v[i].ino));
        f->cmds[i].idempotent = true;
    }
    mfs_store_exec(meta->store, f->cmds, f->n);
    mfs_cmds_fini(f->cmds, f->n);
}

void mfs_parents_flush(void *arg)
{
    struct mfs_meta *meta = arg;
    struct flush *f = malloc(sizeof *f);

    if (!f) {
        mfs_ticker_work(&meta->parents_ticker);
        return;
    }
    for (int round = 0; round < FLUSH_ROUNDS; round++) {
        collect(meta->parents, f);
        if (f->n) {
            send_flush(meta, f);
            mark_sent(meta->parents, f);
        }
        if (f->n < FLUSH_MAX)
            break;
    }
    free(f);
    if (forget_old(meta->parents))
        mfs_ticker_work(&meta->parents_ticker);
}
