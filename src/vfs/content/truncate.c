#include "vfs/content/truncate.h"

#include <errno.h>

#include "data/stripes/stripes.h"
#include "vfs/content/append.h"
#include "vfs/content/commit.h"
#include "vfs/content/privileges.h"

/* An append of nothing: its place is ours until it ends. A help only: stripes are freed already, so
 * if it can't be had the truncate goes on all the same. */
static void keep_appenders_out(struct mfs_vfs *vfs, uint64_t ino, struct mfs_truncation *t)
{
    struct mfs_attr attr;
    uint64_t off;

    mfs_meta_append(vfs->meta, ino, NULL, 0, 0, &off, &t->place, NULL, &attr);
}

static void let_appenders_in(struct mfs_vfs *vfs, uint64_t ino, const struct mfs_truncation *t)
{
    struct mfs_range none = {0};
    struct mfs_attr attr;

    mfs_meta_append_end(vfs->meta, ino, t->place, false, &none, 0, NULL, &attr);
}

/* What was forgotten may have been stored, with zeros before it: then the stripe in which the file
 * is to end keeps some of them. With an end of data that is not behind them nothing would ever
 * look for them. (In stripe 0 the cut itself sees to that.) */
static bool keeps_zeros(const struct mfs_vfs *vfs, const struct mfs_truncation *t, uint64_t stored,
                        const struct mfs_attr *attr)
{
    uint32_t stripe_size = mfs_store_stripe_of(vfs->store, attr->ino);

    return stored > t->size && t->size > stripe_size && t->size % stripe_size != 0 &&
           attr->data_end < t->size;
}

/* `stored`: the end of what was forgotten; 0: nothing was. */
static int look_at(struct mfs_vfs *vfs, uint64_t ino, struct mfs_vnode *v,
                   const struct mfs_truncation *t, uint64_t stored, struct mfs_attr *attr)
{
    int rc;

    /* What is known under a lease may be old by the time of the cut, which is refused then. */
    if (stored == 0 && t->tries == 1)
        return mfs_meta_getattr_leased(vfs->meta, ino, attr);
    rc = mfs_meta_getattr(vfs->meta, ino, attr);
    if (rc == 0 && keeps_zeros(vfs, t, stored, attr))
        rc = mfs_vnode_leave_void(v, t->size, attr);
    if (rc == -ESTALE) /* the mount that freed it did not know of what was forgotten here */
        mfs_stripes_trim(vfs->store, ino, 0, stored, false, NULL);
    return rc;
}

int mfs_truncate_prepare(struct mfs_vfs *vfs, uint64_t ino, struct mfs_vnode *v,
                         struct mfs_truncation *t)
{
    struct mfs_dirty *d = v != NULL ? atomic_load(&v->dirty) : NULL;
    struct timespec mtime;
    struct mfs_attr attr;
    uint64_t stored = 0;
    int rc;

    if (v != NULL)
        mfs_append_stop(v);
    if (t->tries++ > 0 && t->place == 0)
        keep_appenders_out(vfs, ino, t);
    if (d != NULL && mfs_dirty_attr(d, &stored, NULL, &mtime)) {
        t->forgot |= mfs_dirty_cut(d, t->size);
        /* Else a later commit of what is left would set mtime back, and count what is cut. */
        mfs_vnode_flush(v, NULL);
    }
    rc = look_at(vfs, ino, v, t, stored, &attr);
    if (rc < 0)
        return rc;
    t->cut.trimmed = t->tries < MFS_TRUNCATE_TRIES ? attr.version : MFS_TRIMMED_ENOUGH;
    if (attr.data_end > stored)
        stored = attr.data_end;
    if (stored <= t->size || stored <= mfs_store_stripe_of(vfs->store, ino))
        return 0;
    rc = mfs_privileges_drop(vfs, &attr, t->cut.drop);
    if (rc < 0)
        return rc;
    t->trims = true;
    return mfs_stripes_trim(vfs->store, ino, t->size, stored, false, NULL);
}

static void failed(struct mfs_vfs *vfs, uint64_t ino, struct mfs_vnode *v,
                   const struct mfs_truncation *t, int rc)
{
    struct mfs_dirty *d = v != NULL ? atomic_load(&v->dirty) : NULL;
    struct mfs_commit next = {.mtime = mfs_clock_real(), /* the content's next version */
                              .drop = t->cut.drop};
    struct mfs_attr attr;

    if (d != NULL && t->forgot)
        mfs_dirty_lost(d, rc);
    if (t->trims && mfs_meta_commit(vfs->meta, ino, &next, NULL, &attr) == 0)
        mfs_meta_settle(vfs->meta, ino);
    if (v != NULL && (t->forgot || t->trims))
        mfs_vnode_drop_pages(v);
}

int mfs_truncate_end(struct mfs_vfs *vfs, uint64_t ino, struct mfs_vnode *v,
                     const struct mfs_truncation *t, int rc)
{
    if (t->place != 0)
        let_appenders_in(vfs, ino, t);
    if (rc < 0)
        failed(vfs, ino, v, t, rc);
    return rc;
}
