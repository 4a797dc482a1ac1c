/* Times of directories whose names came or went: merged here and sent in the background, so that a
 * create costs its directory's home nothing of its own. Whoever reads the directory through this
 * client sees them already. */
#include "meta/internal.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define FLUSH_MAX    64 /* calls in one go */
#define FLUSH_ROUNDS 256
#define LINGER       MFS_SEC /* longer than attributes are kept, or on their way */

struct change {
    uint64_t ino;
    struct timespec at;
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

void mfs_parents_touch(struct mfs_meta *meta, uint64_t dir, struct timespec now)
{
    struct mfs_parents *p = meta->parents;
    struct change *c;

    pthread_mutex_lock(&p->mutex);
    c = find(p, dir);
    if (!c) {
        c = calloc(1, sizeof *c);
        if (c) {
            c->ino = dir;
            HASH_ADD(hh, p->changes, ino, sizeof c->ino, c);
        }
    }
    if (c && mfs_timespec_cmp(now, c->at) > 0) {
        c->at = now;
        c->sent = 0;
    }
    pthread_mutex_unlock(&p->mutex);
}

/* The same rule as parent_changed in functions/dir.lua. */
static void merge(struct mfs_attr *attr, struct timespec at)
{
    bool newer = mfs_timespec_cmp(at, attr->ctime) > 0;

    if ((attr->flags & MFS_RECORD_MTIME) && !newer)
        return;
    if (mfs_timespec_cmp(at, attr->mtime) > 0)
        attr->mtime = at;
    if (newer)
        attr->ctime = at;
}

void mfs_parents_merge(struct mfs_meta *meta, struct mfs_attr *attr)
{
    struct mfs_parents *p = meta->parents;
    struct change *c;

    pthread_mutex_lock(&p->mutex);
    c = find(p, attr->ino);
    if (c)
        merge(attr, c->at);
    pthread_mutex_unlock(&p->mutex);
}

struct flush {
    struct {
        uint64_t ino;
        struct timespec at;
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

        if (c && mfs_timespec_cmp(c->at, f->v[i].at) == 0)
            c->sent = now;
    }
    pthread_mutex_unlock(&p->mutex);
}

/* What went out is merged on until no attributes are around that were fetched before. */
static void forget_old(struct mfs_parents *p)
{
    int64_t now = mfs_clock_mono();
    struct change *c, *next;

    pthread_mutex_lock(&p->mutex);
    HASH_ITER(hh, p->changes, c, next)
    {
        if (!c->sent || now - c->sent < LINGER)
            continue;
        HASH_DEL(p->changes, c);
        free(c);
    }
    pthread_mutex_unlock(&p->mutex);
}

static void send_flush(struct mfs_meta *meta, struct flush *f)
{
    for (size_t i = 0; i < f->n; i++) {
        struct mfs_call *c = &f->v[i].call;

        f->v[i].ino_arg = mfs_ino_arg(f->v[i].ino);
        f->v[i].time_arg = mfs_time_arg(f->v[i].at);
        mfs_call_function(c, "mfs_ptime");
        mfs_args_bin(&c->args, f->v[i].ino_arg.b, sizeof f->v[i].ino_arg.b);
        mfs_args_bin(&c->args, f->v[i].time_arg.b, sizeof f->v[i].time_arg.b);
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

    if (!f)
        return;
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
    forget_old(meta->parents);
}
