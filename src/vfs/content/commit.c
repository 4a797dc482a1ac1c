#include "vfs/content/commit.h"

#include <errno.h>

#include "base/log.h"
#include "data/stripes/stripes.h"

#define TRIES 100 /* in each of which it was cut once more */

void mfs_vnode_begin_write(struct mfs_vnode *v, struct mfs_dirty *d)
{
    uint64_t known, since;

    pthread_mutex_lock(&v->lock);
    known = v->attr.cuts;
    since = v->cuts;
    pthread_mutex_unlock(&v->lock);
    if (known == since || mfs_dirty_any(d))
        return;
    pthread_mutex_lock(&v->lock);
    v->cuts = known; /* an older one than another thread's does no harm */
    pthread_mutex_unlock(&v->lock);
}

static uint64_t cuts_before(struct mfs_vnode *v)
{
    uint64_t cuts;

    pthread_mutex_lock(&v->lock);
    cuts = v->cuts;
    pthread_mutex_unlock(&v->lock);
    return cuts;
}

static uint64_t parts_end(const struct mfs_commit *c)
{
    uint64_t end = 0;

    for (size_t i = 0; i < c->nparts; i++)
        if ((uint64_t)c->parts[i].off + c->parts[i].len > end)
            end = (uint64_t)c->parts[i].off + c->parts[i].len;
    return end;
}

/* Commits of `left` what is there now that the file has been cut; *attr is fetched before. */
static int commit_kept(struct mfs_vnode *v, const struct mfs_commit *all, struct mfs_ranges *left,
                       uint64_t *from, struct mfs_attr *attr)
{
    int rc = mfs_meta_getattr(v->vfs->meta, v->ino, attr);
    struct mfs_commit c = *all;
    uint64_t cuts;

    if (rc == 0)
        rc = mfs_stripes_still_stored(v->vfs->store, v->ino, left);
    if (rc < 0)
        return rc;
    cuts = attr->cuts;
    c.cuts = &cuts;
    c.stored = left->v;
    c.nstored = left->n;
    c.end = parts_end(all);
    if (mfs_ranges_end(left) > c.end)
        c.end = mfs_ranges_end(left);
    *from = attr->version;
    if (c.end == 0)
        return 0; /* nothing is left */
    return mfs_meta_commit(v->vfs->meta, v->ino, &c, from, attr);
}

static int commit_again(struct mfs_vnode *v, const struct mfs_commit *c, uint64_t *from,
                        struct mfs_attr *attr)
{
    struct mfs_ranges left;
    uint64_t bytes;
    int rc = 0;

    mfs_ranges_init(&left);
    for (size_t i = 0; i < c->nstored && rc == 0; i++)
        rc = mfs_ranges_add(&left, c->stored[i].lo, c->stored[i].hi);
    bytes = mfs_ranges_bytes(&left);
    if (rc == 0)
        rc = -ECANCELED;
    for (int i = 0; i < TRIES && rc == -ECANCELED; i++)
        rc = commit_kept(v, c, &left, from, attr);
    if (mfs_ranges_bytes(&left) < bytes) {
        mfs_info("vfs", "inode %llx: was cut by another mount while it was written to",
                 (unsigned long long)v->ino);
        mfs_vnode_drop_pages(v); /* they may show what is gone */
    }
    mfs_ranges_fini(&left);
    return rc;
}

/* A mfs_dirty_commit_fn. Blocks for a few round trips, each bounded. */
static int commit(void *arg, const struct mfs_dirty_commit *d)
{
    struct mfs_vnode *v = arg;
    struct mfs_part part[d->nparts > 0 ? d->nparts : 1];
    uint64_t cuts = cuts_before(v);
    struct mfs_commit c = {.end = d->end,
                           .stored = d->stored,
                           .nstored = d->nstored,
                           .cuts = d->nstored > 0 ? &cuts : NULL,
                           .mtime = d->mtime,
                           .drop = MFS_DROP_CAPS | (d->drops ? MFS_DROP_IDS : 0),
                           .parts = part,
                           .nparts = d->nparts};
    struct mfs_attr attr;
    uint64_t from;
    int rc;

    atomic_fetch_add(&v->changing, 1);
    for (size_t i = 0; i < d->nparts; i++)
        part[i] = (struct mfs_part){d->parts[i].off, d->parts[i].len, d->parts[i].p};
    rc = mfs_meta_commit(v->vfs->meta, v->ino, &c, &from, &attr);
    if (rc == -ECANCELED)
        rc = commit_again(v, &c, &from, &attr);
    if (rc == 0) {
        mfs_vnode_carry(v, from, &attr);
    } else {
        /* The kernel's pages hold what never was stored. */
        mfs_pages_forget(v->vfs->pages, v->ino);
        mfs_vnode_changed(v);
    }
    atomic_fetch_sub(&v->changing, 1);
    return rc;
}

int mfs_vnode_leave_void(struct mfs_vnode *v, uint64_t end, struct mfs_attr *attr)
{
    const struct mfs_commit c = {.data_end = end};
    uint64_t from;
    int rc;

    atomic_fetch_add(&v->changing, 1);
    rc = mfs_meta_commit(v->vfs->meta, v->ino, &c, &from, attr);
    if (rc == 0)
        mfs_vnode_carry(v, from, attr);
    atomic_fetch_sub(&v->changing, 1);
    return rc;
}

struct mfs_dirty *mfs_vnode_dirty(struct mfs_vnode *v)
{
    struct mfs_dirty *d = atomic_load(&v->dirty);

    if (d != NULL)
        return d;
    pthread_mutex_lock(&v->lock);
    d = atomic_load(&v->dirty);
    if (d == NULL && mfs_dirty_create(&d, v->vfs->wb, v->ino, commit, v) == 0)
        atomic_store(&v->dirty, d);
    pthread_mutex_unlock(&v->lock);
    return d;
}
