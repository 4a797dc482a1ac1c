#include "vfs/vnode/vnode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/threads/gate.h"
#include "base/threads/thread.h"
#include "base/hash.h"
#include "base/log.h"
#include "data/stripes/geometry.h"

static struct mfs_vnode_shard *shard_of(struct mfs_vfs *vfs, uint64_t ino)
{
    return &vfs->shard[mfs_hash64(&ino, sizeof ino, 1) % MFS_VNODE_SHARDS];
}

static struct mfs_vnode *vnode_new(struct mfs_vfs *vfs, uint64_t ino)
{
    struct mfs_vnode *v = calloc(1, sizeof *v);

    if (v == NULL || mfs_latch_init(&v->latch) < 0) {
        free(v);
        return NULL;
    }
    v->ino = ino;
    v->vfs = vfs;
    atomic_init(&v->generation, 1);
    mfs_ranges_init(&v->voids);
    mfs_ranges_init(&v->fills.ranges);
    pthread_mutex_init(&v->lock, NULL);
    pthread_mutex_init(&v->append.lock, NULL);
    mfs_cond_init(&v->append.changed);
    return v;
}

static void vnode_free(struct mfs_vnode *v)
{
    struct mfs_dirty *dirty = atomic_load(&v->dirty);

    if (dirty != NULL)
        mfs_dirty_destroy(dirty);
    mfs_ranges_fini(&v->voids);
    mfs_ranges_fini(&v->fills.ranges);
    mfs_latch_fini(&v->latch);
    free(v->append.buf);
    pthread_cond_destroy(&v->append.changed);
    pthread_mutex_destroy(&v->append.lock);
    pthread_mutex_destroy(&v->lock);
    free(v);
}

/* `make`: a new vnode for when there is none, taken over in any case; NULL: only look. */
static struct mfs_vnode *find_or_add(struct mfs_vfs *vfs, uint64_t ino, struct mfs_vnode *make)
{
    struct mfs_vnode_shard *s = shard_of(vfs, ino);
    struct mfs_vnode *v;

    pthread_mutex_lock(&s->lock);
    HASH_FIND(hh, s->table, &ino, sizeof ino, v);
    if (v == NULL && make != NULL) {
        HASH_ADD(hh, s->table, ino, sizeof make->ino, make);
        if (make->hh.tbl != NULL) {
            v = make;
            make = NULL;
        }
    }
    if (v != NULL)
        v->refs++;
    pthread_mutex_unlock(&s->lock);
    if (make != NULL)
        vnode_free(make);
    return v;
}

struct mfs_vnode *mfs_vnode_find(struct mfs_vfs *vfs, uint64_t ino)
{
    return find_or_add(vfs, ino, NULL);
}

struct mfs_vnode *mfs_vnode_get(struct mfs_vfs *vfs, uint64_t ino)
{
    struct mfs_vnode *v = find_or_add(vfs, ino, NULL);

    if (v == NULL) {
        v = vnode_new(vfs, ino);
        if (v != NULL)
            v = find_or_add(vfs, ino, v);
    }
    return v;
}

void mfs_vnode_put(struct mfs_vnode *v)
{
    struct mfs_vnode_shard *s;
    bool last;

    if (v == NULL)
        return;
    s = shard_of(v->vfs, v->ino);
    pthread_mutex_lock(&s->lock);
    last = --v->refs == 0;
    if (last)
        HASH_DELETE(hh, s->table, v);
    pthread_mutex_unlock(&s->lock);
    if (last)
        vnode_free(v);
}

void mfs_vnode_init_shards(struct mfs_vfs *vfs)
{
    for (unsigned i = 0; i < MFS_VNODE_SHARDS; i++)
        pthread_mutex_init(&vfs->shard[i].lock, NULL);
}

static void abandon(struct mfs_vnode *v, void (*files)(struct mfs_vnode *v))
{
    int rc = mfs_vnode_flush(v, NULL);

    if (rc < 0)
        mfs_warn("vfs", "inode %llx: data lost at the end: %s", (unsigned long long)v->ino,
                 strerror(-rc));
    files(v);
}

/* With a reference, which keeps its place in the table. NULL: v was the last. */
static struct mfs_vnode *get_next(struct mfs_vnode_shard *s, struct mfs_vnode *v)
{
    struct mfs_vnode *next;

    pthread_mutex_lock(&s->lock);
    next = v != NULL ? v->hh.next : s->table;
    if (next != NULL)
        next->refs++;
    pthread_mutex_unlock(&s->lock);
    return next;
}

void mfs_vnode_abandon_all(struct mfs_vfs *vfs, void (*files)(struct mfs_vnode *v))
{
    for (unsigned i = 0; i < MFS_VNODE_SHARDS; i++) {
        struct mfs_vnode *v = get_next(&vfs->shard[i], NULL), *next;

        for (; v != NULL; v = next) {
            abandon(v, files);
            next = get_next(&vfs->shard[i], v);
            mfs_vnode_put(v);
        }
    }
}

void mfs_vnode_fini_shards(struct mfs_vfs *vfs)
{
    for (unsigned i = 0; i < MFS_VNODE_SHARDS; i++) {
        struct mfs_vnode *v, *next;

        HASH_ITER(hh, vfs->shard[i].table, v, next)
        {
            HASH_DELETE(hh, vfs->shard[i].table, v);
            vnode_free(v);
        }
        pthread_mutex_destroy(&vfs->shard[i].lock);
    }
}

/* --- write-behind -------------------------------------------------------------------------- */

static int64_t blocks(uint64_t bytes)
{
    return (int64_t)((bytes + MFS_GEOMETRY_BLOCK - 1) / MFS_GEOMETRY_BLOCK * MFS_GEOMETRY_BLOCK);
}

struct gathered { /* appends */
    uint64_t end, bytes;
    struct timespec mtime;
};

static struct gathered gathered(struct mfs_vnode *v)
{
    struct gathered g;

    pthread_mutex_lock(&v->append.lock);
    g = (struct gathered){v->append.begin + v->append.n, v->append.n, v->append.mtime};
    pthread_mutex_unlock(&v->append.lock);
    return g;
}

void mfs_vnode_overlay(struct mfs_vnode *v, struct mfs_attr *attr)
{
    struct mfs_dirty *d = atomic_load(&v->dirty);
    struct timespec mtime;
    uint64_t end, bytes, more;
    bool pending = d != NULL && mfs_dirty_attr(d, &end, &bytes, &mtime);
    struct gathered g = gathered(v);

    mfs_vnode_learn(v, attr, false);
    if (g.bytes > 0 && (!pending || mfs_timespec_cmp(g.mtime, mtime) > 0))
        mtime = g.mtime;
    end = pending ? end : 0;
    bytes = (pending ? bytes : 0) + g.bytes;
    pending = pending || g.bytes > 0;
    end = g.bytes > 0 && g.end > end ? g.end : end;
    if (!pending)
        return;
    /* It will take room, it is not known how much: du shall not say 0. */
    more = attr->size < end ? end - attr->size : 0;
    attr->alloc += blocks(more < bytes ? more : bytes);
    if (attr->alloc < blocks(bytes))
        attr->alloc = blocks(bytes);
    if (attr->size < end)
        attr->size = end;
    attr->mtime = mtime; /* also when a later one was set by hand before */
    if (mfs_timespec_cmp(attr->ctime, mtime) < 0)
        attr->ctime = mtime;
}

static void invalidate(struct mfs_vfs *vfs, uint64_t ino, void (*done)(void *done_arg),
                       void *done_arg)
{
    mfs_vfs_invalidate_fn *fn = atomic_load(&vfs->invalidate);

    if (fn != NULL)
        fn(atomic_load(&vfs->invalidate_arg), ino, done, done_arg);
    else if (done != NULL)
        done(done_arg);
}

void mfs_vnode_drop_pages(struct mfs_vnode *v)
{
    mfs_pages_forget(v->vfs->pages, v->ino);
    mfs_vnode_changed(v);
    invalidate(v->vfs, v->ino, NULL, NULL);
}

bool mfs_vnode_drop_pages_wait(struct mfs_vnode *v, int64_t most)
{
    struct mfs_gate *gate = mfs_gate_create();

    if (gate == NULL)
        return false;
    mfs_pages_forget(v->vfs->pages, v->ino);
    mfs_vnode_changed(v);
    invalidate(v->vfs, v->ino, mfs_gate_open, gate);
    return mfs_gate_wait(gate, most);
}

/* What is known is no more true, nor is what arrives late of before `version`. */
static void unlearn(struct mfs_vnode *v, uint64_t version)
{
    pthread_mutex_lock(&v->lock);
    if (version > v->noticed)
        v->noticed = version;
    if (version == 0 || v->attr.version < version)
        v->known = false;
    if (version == 0)
        v->voids_version = 0; /* after a failover versions may come again, of other content */
    pthread_mutex_unlock(&v->lock);
    mfs_vnode_changed(v);
}

/* Changes may have been missed: nothing that is open here can be trusted. */
static void changed_anything(struct mfs_vfs *vfs, void (*done)(void *done_arg), void *done_arg)
{
    for (unsigned i = 0; i < MFS_VNODE_SHARDS; i++) {
        struct mfs_vnode_shard *s = &vfs->shard[i];
        struct mfs_vnode *v, *next;

        pthread_mutex_lock(&s->lock);
        HASH_ITER(hh, s->table, v, next)
        {
            unlearn(v, 0);
            mfs_vnode_drop_pages(v);
        }
        pthread_mutex_unlock(&s->lock);
    }
    invalidate(vfs, 0, done, done_arg); /* which comes after all others */
}

void mfs_vnode_changed_elsewhere(void *arg, uint64_t ino, uint64_t version,
                                 void (*done)(void *done_arg), void *done_arg)
{
    struct mfs_vfs *vfs = arg;
    struct mfs_vnode *v;

    if (ino == 0) {
        changed_anything(vfs, done, done_arg);
        return;
    }
    mfs_pages_forget(vfs->pages, ino);
    v = mfs_vnode_find(vfs, ino);
    if (v != NULL)
        unlearn(v, version);
    invalidate(vfs, ino, done, done_arg);
    mfs_vnode_put(v);
}

/* A process that is told that data are lost is not to see them any more. */
#define LOST_WAIT MFS_SEC

int mfs_vnode_write_back(struct mfs_vnode *v, uint64_t *seen)
{
    int rc = mfs_dirty_flush(atomic_load(&v->dirty), seen);

    if (rc < 0)
        mfs_vnode_drop_pages(v);
    return rc;
}

int mfs_vnode_flush(struct mfs_vnode *v, uint64_t *seen)
{
    struct mfs_dirty *d = atomic_load(&v->dirty);
    int rc = d != NULL ? mfs_dirty_flush(d, seen) : 0;

    if (rc < 0 && seen == NULL)
        mfs_vnode_drop_pages(v);
    else if (rc < 0 && !mfs_vnode_drop_pages_wait(v, LOST_WAIT))
        mfs_warn("vfs", "inode %llx: lost data may still be in the page cache",
                 (unsigned long long)v->ino);
    return rc;
}

/* --- attributes ---------------------------------------------------------------------------- */

void mfs_vnode_learn(struct mfs_vnode *v, struct mfs_attr *attr, bool own)
{
    bool changed;

    pthread_mutex_lock(&v->lock);
    /* Also when what is known has been withdrawn: what was read since then may be of in between. */
    changed = v->attr.version != 0 && v->attr.version != attr->version;
    if (v->known && v->attr.version > attr->version) {
        *attr = v->attr;
        changed = false;
    } else if (attr->version >= v->noticed) {
        v->attr = *attr;
        v->known = true;
    }
    pthread_mutex_unlock(&v->lock);
    if (changed || own)
        mfs_vnode_changed(v);
}

void mfs_vnode_carry(struct mfs_vnode *v, uint64_t from, struct mfs_attr *attr)
{
    mfs_pages_carry(v->vfs->pages, v->ino, from, attr->version);
    mfs_vnode_learn(v, attr, true);
}

bool mfs_vnode_attr(struct mfs_vnode *v, struct mfs_attr *attr)
{
    /* Before: a new session counts when all this has been forgotten. After: while it was copied
     * this client may have been stopped. */
    bool known = mfs_meta_in_contact(v->vfs->meta);

    pthread_mutex_lock(&v->lock);
    known = known && v->known;
    *attr = v->attr;
    pthread_mutex_unlock(&v->lock);
    return known && mfs_meta_in_contact(v->vfs->meta);
}
