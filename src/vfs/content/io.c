/* Reading and writing of open files. */
#include <errno.h>
#include <string.h>

#include "data/stripes/stripes.h"
#include "vfs/content/append.h"
#include "vfs/content/commit.h"
#include "vfs/content/content.h"
#include "vfs/content/head.h"
#include "vfs/vnode/file.h"
#include "vfs/content/fills.h"
#include "vfs/content/privileges.h"
#include "vfs/content/tail.h"

#define AGAIN_MOST 8 /* times that a read begins anew because another mount changes the end */

/* --- reading -------------------------------------------------------------------------------- */

/* The end of what is dirty; 0: nothing is. To be asked before the attributes: what is committed in
 * between is in these. */
static uint64_t dirty_end(struct mfs_vnode *v)
{
    struct mfs_dirty *d = atomic_load(&v->dirty);
    struct timespec mtime;
    uint64_t end = 0;

    return d != NULL && mfs_dirty_attr(d, &end, NULL, &mtime) ? end : 0;
}

/* The end of the file as far as this mount knows, what is dirty included. False: it knows of no
 * more than what is dirty. */
static bool known_size(struct mfs_vnode *v, uint64_t *size)
{
    uint64_t end = dirty_end(v);
    struct mfs_attr attr;
    bool known = mfs_vnode_attr(v, &attr);

    *size = known && attr.size > end ? attr.size : end;
    return known;
}

/* The kernel's requests end with the page that the file ends in: only past that it must know of a
 * longer file than we do. Appends that are gathered meanwhile do not count: nobody could read them
 * yet (mfs_append_store was before). */
static int size_for(struct mfs_vnode *v, uint64_t end, bool direct, uint64_t *size)
{
    struct mfs_attr attr;
    bool known = known_size(v, size);
    uint64_t bound = direct ? *size : (*size + MFS_TAIL_PAGE - 1) / MFS_TAIL_PAGE * MFS_TAIL_PAGE;
    uint64_t dirty;
    int rc;

    if (known && end <= bound)
        return 0;
    dirty = dirty_end(v);
    rc = mfs_meta_getattr(v->vfs->meta, v->ino, &attr);
    if (rc == 0) {
        mfs_vnode_learn(v, &attr, false);
        *size = attr.size > dirty ? attr.size : dirty;
    }
    return rc;
}

static int read_stripes(struct mfs_file *f, uint64_t off, size_t len, uint64_t size, void *buf,
                        struct mfs_view *view)
{
    struct mfs_vnode *v = f->node;
    uint64_t now = atomic_load(&v->generation);

    if (atomic_load(&f->ra_generation) != now) {
        mfs_readahead_drop(f->ra, 0, UINT64_MAX);
        atomic_store(&f->ra_generation, now);
    }
    return mfs_readahead_read_over(f->ra, atomic_load(&v->dirty), mfs_content_known, v, off, len,
                                   size, buf, view);
}

/* Small files that this client has just written or looked up. */
static bool read_kept(struct mfs_vnode *v, uint64_t off, size_t len, uint64_t size, void *buf)
{
    struct mfs_dirty *d = atomic_load(&v->dirty);
    struct mfs_attr attr;

    return size <= MFS_META_CONTENT && (d == NULL || !mfs_dirty_any(d)) &&
           mfs_vnode_attr(v, &attr) &&
           mfs_meta_content(v->vfs->meta, v->ino, attr.version, off, len, buf);
}

void mfs_vfs_accessed(struct mfs_file *f)
{
    struct mfs_vnode *v = f->node;
    struct mfs_attr attr;
    struct timespec before;

    if (v->vfs->opts.no_atime || (f->flags & O_NOATIME) || !mfs_flags_read(f->flags) ||
        !mfs_vnode_attr(v, &attr))
        return;
    before = attr.atime;
    mfs_meta_touch_atime(v->vfs->meta, v->ino, &attr);
    if (mfs_timespec_cmp(before, attr.atime) == 0)
        return;
    pthread_mutex_lock(&v->lock);
    v->attr.atime = attr.atime;
    pthread_mutex_unlock(&v->lock);
}

/* *size: where the file ended. */
static ssize_t read_once(struct mfs_file *f, void *buf, size_t len, uint64_t off, bool direct,
                         uint64_t *size, struct mfs_view *view)
{
    int rc = size_for(f->node, off + len, direct, size);
    bool kept;

    if (rc < 0)
        return rc;
    if (off >= *size || len == 0)
        return 0;
    if (len > *size - off)
        len = (size_t)(*size - off);
    kept = mfs_file_read_head(f, off, len, *size, buf) || read_kept(f->node, off, len, *size, buf);
    if (!kept)
        rc = read_stripes(f, off, len, *size, buf, view);
    else if (view != NULL)
        *view = (struct mfs_view){.iov = {{buf, len}}, .n = 1};
    if (kept || *size <= MFS_META_CONTENT)
        mfs_meta_cached(f->node->vfs->meta, MFS_CACHE_CONTENTS, kept);
    else if (view != NULL)
        mfs_meta_cached(f->node->vfs->meta, MFS_CACHE_READ_AHEAD, view->nheld > 0);
    return rc < 0 ? rc : (ssize_t)len;
}

ssize_t mfs_vfs_read(struct mfs_file *f, void *buf, size_t len, uint64_t off, bool direct,
                     struct mfs_view *view)
{
    uint64_t size;
    ssize_t n;

    if (f->ra == NULL)
        return -EBADF;
    mfs_file_answer_taken(f);
    if (!direct)
        mfs_fills_read(f->node, off, len);
    mfs_append_store(f->node);
    for (int again = 0; again <= AGAIN_MOST; again++) {
        if (view != NULL)
            mfs_view_release(view);
        n = read_once(f, buf, len, off, direct, &size, view);
        if (direct || n <= 0 || off + (uint64_t)n < size || mfs_tail_read(f->node, size))
            break;
    }
    if (n > 0)
        mfs_vfs_accessed(f);
    return n;
}

int mfs_vfs_learn_end(struct mfs_vfs *vfs, uint64_t ino, uint64_t *size)
{
    struct mfs_vnode *v = mfs_vnode_find(vfs, ino);
    struct mfs_attr attr;
    int rc = mfs_meta_getattr(vfs->meta, ino, &attr);

    if (rc == 0 && v != NULL)
        mfs_vnode_learn(v, &attr, false);
    if (rc == 0)
        *size = attr.size;
    mfs_vnode_put(v);
    return rc;
}

void mfs_vfs_pages_dropped(struct mfs_vfs *vfs, uint64_t ino, uint64_t size)
{
    struct mfs_vnode *v = mfs_vnode_find(vfs, ino);

    if (v != NULL)
        mfs_tail_dropped(v, size);
    mfs_vnode_put(v);
}

/* --- writing -------------------------------------------------------------------------------- */

/* *at: where to, and to_end: where it went. */
static ssize_t take(struct mfs_file *f, const void *buf, size_t len, uint64_t *at, bool to_end,
                    uint32_t how)
{
    struct mfs_vnode *v = f->node;
    uint64_t off = *at;
    uint32_t drop = how & MFS_DROP_ALL;
    struct mfs_dirty *d;
    int rc;

    if (len == 0)
        return 0;
    if (to_end) {
        ssize_t n;

        mfs_latch_enter(&v->latch);
        n = mfs_append(f, buf, len, at, drop);
        mfs_latch_leave(&v->latch);
        return n;
    }
    if (off >= mfs_vnode_size_max(v))
        return -EFBIG;
    if (len > mfs_vnode_size_max(v) - off)
        len = (size_t)(mfs_vnode_size_max(v) - off);
    d = mfs_vnode_dirty(v);
    if (d == NULL)
        return -ENOMEM;
    mfs_latch_enter(&v->latch);
    mfs_append_store(v); /* what this may overwrite */
    mfs_vnode_changed(v);
    mfs_tail_made(v, off + len, false);
    mfs_vnode_begin_write(v, d);
    rc = mfs_dirty_write(d, off, len, buf, drop & MFS_DROP_IDS);
    mfs_latch_leave(&v->latch);
    if (rc == 0 && (how & MFS_VFS_THROUGH))
        rc = mfs_vnode_write_back(v, &f->errors);
    else if (rc == 0 && mfs_privileges_appeared(v, drop))
        rc = mfs_vnode_flush(v, &f->errors);
    return rc < 0 ? rc : (ssize_t)len;
}

ssize_t mfs_vfs_write(struct mfs_file *f, const void *buf, size_t len, uint64_t off, int flags,
                      uint32_t how)
{
    return mfs_vfs_write_to(f, buf, len, &off, flags, how);
}

ssize_t mfs_vfs_write_to(struct mfs_file *f, const void *buf, size_t len, uint64_t *at, int flags,
                         uint32_t how)
{
    bool through = how & MFS_VFS_THROUGH;
    ssize_t n;
    int rc = 0;

    mfs_file_answer_taken(f);
    /* What a page brings the commit follows at once, and Linux keeps that locked: nothing may be
     * waited for. */
    n = through ? 0 : mfs_privileges_begin_write(f->node, how & MFS_DROP_ALL);
    if (n == 0)
        n = take(f, buf, len, at, (flags & O_APPEND) && !through, how);
    if (n > 0 && (flags & O_DSYNC) && f->bypasses && !through)
        rc = mfs_vfs_fsync(f);
    return rc < 0 ? rc : n;
}

bool mfs_vfs_direct_written(struct mfs_file *f, uint64_t off, size_t len, struct mfs_range *drop)
{
    return mfs_fills_direct_written(f->node, off, len, drop);
}

void mfs_vfs_direct_dropped(struct mfs_file *f)
{
    mfs_fills_direct_dropped(f->node);
}

bool mfs_vfs_cached_written(struct mfs_file *f, uint64_t off, size_t len, int64_t since,
                            struct mfs_range *drop)
{
    return mfs_fills_cached_written(f->node, f, off, len, since, drop);
}

void mfs_vfs_pages_invalidated(struct mfs_vfs *vfs, uint64_t ino)
{
    struct mfs_vnode *v = mfs_vnode_find(vfs, ino);

    if (v != NULL)
        mfs_fills_invalidated(v, NULL);
    mfs_vnode_put(v);
}

void mfs_vfs_open_invalidates(struct mfs_file *f)
{
    mfs_fills_invalidated(f->node, f);
}
