/* Open files: open and create, read and write, flush, fsync and release. What differs between a
 * request that goes through the kernel's pages and one that passes them by is decided here: when
 * pages may be kept (open), and which older pages have to be dropped before, or behind, the answer
 * to a write (vfs/content/fills.h). A direct write whose range has older pages is answered when
 * they are gone, by the thread that drops them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "data/readahead/readahead.h"
#include "fuse/kernel/parts.h"
#include "fuse/mount/device.h"
#include "fuse/ops/ops.h"

#define PAGE      4096U
#define DROP_WAIT MFS_SEC /* most, for a written file's older pages to go */

/* The size that the kernel believes may be one from before another mount's change: appends bypass
 * its pages. */
static bool appends(int flags)
{
    return (flags & O_APPEND) && (flags & O_ACCMODE) != O_RDONLY;
}

/* When a read with O_DIRECT brings less than the kernel believes the file to hold, Linux takes the
 * rest from its pages; and when it is asked to drop those in just that moment, it does not believe
 * either that the file ends there: zeros come up to where the file ended before another mount cut
 * it. So these bypass its pages wholly, where they can be mapped nevertheless. */
static bool bypasses(int flags)
{
    return (flags & O_DIRECT) && mfs_device_maps_direct();
}

/* Likewise when the kernel may have missed that another mount has cut the file. */
static bool missed_cut(struct mfs_fuse *m, uint64_t ino, struct mfs_file *file)
{
    struct mfs_attr attr;

    if (!mfs_device_maps_direct())
        return false;
    if (!mfs_vfs_size(file, &attr))
        attr.size = 0; /* it has changed since the open: it may end anywhere */
    return mfs_replied_may_be_stale(m->replied, ino, attr.size, mfs_clock_mono());
}

static void fill_info(struct mfs_fuse *m, uint64_t ino, struct fuse_file_info *fi,
                      struct mfs_file *file, bool keep_cache)
{
    bool direct = bypasses(fi->flags);

    fi->fh = (uintptr_t)file;
    fi->keep_cache = keep_cache;
    fi->direct_io = appends(fi->flags) || direct || missed_cut(m, ino, file);
    if (fi->direct_io)
        mfs_vfs_bypasses(file);
    if (direct)
        mfs_device_write_in_parallel();
    if (!keep_cache)
        mfs_vfs_open_invalidates(file);
}

/* That pages are read which the kernel keeps shows in a GETATTR alone: mfs_op_getattr. */
static void see_reads(struct mfs_fuse *m, uint64_t ino, struct mfs_file *file, int flags)
{
    struct mfs_attr attr;

    if ((flags & O_ACCMODE) != O_WRONLY && mfs_vfs_size(file, &attr) &&
        mfs_vfs_atime_is_due(m->vfs, &attr))
        mfs_recaller_recall(m->recaller, ino, NULL, NULL);
}

/* The opener was interrupted, and will never read it or close it. */
static void undo_open(struct mfs_file *file)
{
    mfs_vfs_does_not_count(file);
    mfs_vfs_release(file);
}

void mfs_op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_OPEN);
    int keeps = mfs_op_drop(req) & MFS_DROP_IDS ? 0 : MFS_VFS_MAY_KEEP;
    struct mfs_file *file;
    bool keep_cache;
    int rc = mfs_retries_open(m->retries, fuse_req_ctx(req)->pid, ino, fi->flags | keeps, &file,
                              &keep_cache);

    if (rc < 0) {
        mfs_reply_rc(req, rc);
        return;
    }
    fill_info(m, ino, fi, file, keep_cache);
    if (keep_cache)
        see_reads(m, ino, file, fi->flags);
    if (fuse_reply_open(req, fi) == -ENOENT)
        undo_open(file);
}

static void make_tmpfile(fuse_req_t req, fuse_ino_t parent, mode_t mode, struct fuse_file_info *fi)
{
    struct mfs_fuse *m = fuse_req_userdata(req);
    struct mfs_cred cred = mfs_op_cred(req);
    struct fuse_entry_param e;
    struct mfs_attr attr;
    struct mfs_file *file;
    bool keep_cache;
    int rc = mfs_vfs_tmpfile(m->vfs, mfs_nodeids_ino(parent), NULL, mode, fi->flags, &cred, &attr,
                             &file, &keep_cache);

    if (rc < 0) {
        mfs_reply_rc(req, rc);
        return;
    }
    mfs_fill_entry(m, parent, MFS_DEVICE_TMPFILE, &attr, &e);
    fill_info(m, attr.ino, fi, file, keep_cache);
    if (fuse_reply_create(req, &e, fi) == -ENOENT)
        undo_open(file);
}

void mfs_op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                   struct fuse_file_info *fi)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_CREATE);
    struct mfs_cred cred = mfs_op_cred(req);
    struct fuse_entry_param e;
    struct mfs_attr attr;
    struct mfs_file *file;
    pid_t thread = fuse_req_ctx(req)->pid;
    bool keep_cache, shown;
    int rc;

    if (strcmp(name, MFS_DEVICE_TMPFILE) == 0) {
        make_tmpfile(req, parent, mode, fi);
        return;
    }
    rc = mfs_vfs_create_open(m->vfs, mfs_nodeids_ino(parent), name, mode, fi->flags, &cred, &attr,
                             &file, &keep_cache);

    if (rc < 0) {
        mfs_reply_rc(req, rc);
        return;
    }
    mfs_op_names_changed(m, parent);
    mfs_lookup_attrs_remember(m->lookup_attrs, thread, &attr);
    shown = mfs_vfs_has_created(file) && mfs_op_shows(req, &attr, true);
    mfs_fill_entry(m, parent, name, &attr, &e);
    if (shown)
        e.attr_timeout = MFS_OP_SECONDS(MFS_META_SHOWN);
    fill_info(m, attr.ino, fi, file, keep_cache);
    rc = fuse_reply_create(req, &e, fi);
    if (shown)
        mfs_op_shown(m, thread, attr.ino);
    if (rc == -ENOENT)
        undo_open(file);
}

/* Does a READ or WRITE pass the kernel's pages by? With these it names an owner of locks, which
 * what fills pages, or comes from them, has not (fs/fuse/file.c: fuse_direct_io). The open file
 * does not tell: it may be mapped all the same, and fcntl(2) sets O_DIRECT later. */
static bool is_direct(const struct fuse_file_info *fi)
{
    return fi->lock_owner != 0;
}

void mfs_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_READ);
    void *buf = mfs_op_buffer(size);
    struct mfs_view view = {0};
    ssize_t n = -ENOMEM;

    (void)ino;
    if (buf != NULL)
        n = mfs_vfs_read(mfs_op_file(fi), buf, size, (uint64_t)off, is_direct(fi), &view);
    if (n < 0) {
        fuse_reply_err(req, (int)-n);
        return;
    }
    mfs_metric_add(m->requests, MFS_FUSE_READ, 0, (uint64_t)n);
    fuse_reply_iov(req, view.iov, view.n);
    mfs_view_release(&view);
}

/* A direct write that is answered when the older pages of its range are dropped. */
struct direct_write {
    fuse_req_t req;
    struct mfs_file *file;
    size_t n;
    struct mfs_request timing;
};

static void answer_direct_write(void *arg)
{
    struct direct_write *o = arg;

    mfs_vfs_direct_dropped(o->file);
    mfs_op_answer_detached(o->req, &o->timing, 0);
    fuse_reply_write(o->req, o->n);
    free(o);
}

/* Older bytes may be in pages of a write that has come through them (vfs/content/fills.h). The page
 * that it ends in is locked until the answer if the write covers only a part, of a page that was
 * not there: so that one is dropped behind the answer, and fsync(2) and close(2) wait for it. The
 * others are waited for here, but not without bound: the lock may be on a folio of several pages.
 */
static void reply_cached_write(struct mfs_fuse *m, fuse_req_t req, fuse_ino_t ino, size_t n,
                               uint64_t off, const struct mfs_range *drop)
{
    bool covers = off <= drop->hi - PAGE && off + n == drop->hi;
    uint64_t locked = covers ? drop->hi : drop->hi - PAGE;
    struct mfs_range free = {drop->lo, locked}, rest = {locked, drop->hi};

    if (free.lo < free.hi) {
        mfs_notify_drop(m->writes, ino, &free, NULL, NULL);
        mfs_notify_settle(m->writes, ino, DROP_WAIT);
    }
    fuse_reply_write(req, n);
    if (rest.lo < rest.hi)
        mfs_notify_drop(m->writes, ino, &rest, NULL, NULL);
}

static void reply_cached(struct mfs_fuse *m, fuse_req_t req, fuse_ino_t ino, size_t n, off_t off,
                         const struct fuse_file_info *fi, int64_t since)
{
    struct mfs_range drop;

    if (!fi->writepage && mfs_vfs_cached_written(mfs_op_file(fi), (uint64_t)off, n, since, &drop))
        reply_cached_write(m, req, ino, n, (uint64_t)off, &drop);
    else
        fuse_reply_write(req, n);
}

static void reply_direct(struct mfs_fuse *m, fuse_req_t req, fuse_ino_t ino, size_t n, off_t off,
                         const struct fuse_file_info *fi)
{
    struct mfs_file *file = mfs_op_file(fi);
    struct direct_write *o;
    struct mfs_range drop;

    if (!mfs_vfs_direct_written(file, (uint64_t)off, n, &drop)) {
        fuse_reply_write(req, n);
        return;
    }
    o = malloc(sizeof *o);
    if (o == NULL) {
        mfs_vfs_direct_dropped(file);
        fuse_reply_err(req, ENOMEM);
        return;
    }
    o->req = req;
    o->file = file;
    o->n = n;
    mfs_request_detach(&o->timing);
    mfs_notify_drop(m->writes, ino, &drop, answer_direct_write, o);
}

void mfs_op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
                  struct fuse_file_info *fi)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_WRITE);
    int64_t since = mfs_request_since();
    pid_t thread = fuse_req_ctx(req)->pid;
    /* Any process may have stored what a page of a mapping brings. */
    uint32_t how = fi->writepage ? MFS_VFS_THROUGH | MFS_DROP_ALL : mfs_op_drop(req);
    ssize_t n = mfs_vfs_write(mfs_op_file(fi), buf, size, (uint64_t)off, fi->flags, how);

    if (n < 0) {
        fuse_reply_err(req, (int)-n);
        return;
    }
    if (!fi->writepage && !is_direct(fi)) /* a thread waits for it */
        mfs_recalls_taken(m->recalls, thread);
    if (fi->writepage) /* the kernel does not count what it writes back as a change */
        mfs_recaller_recall(m->recaller, ino, NULL, NULL);
    mfs_replied_extended(m->replied, ino, (uint64_t)(off + n));
    mfs_metric_add(m->requests, MFS_FUSE_WRITTEN, 0, (uint64_t)n);
    if (is_direct(fi))
        reply_direct(m, req, ino, (size_t)n, off, fi);
    else
        reply_cached(m, req, ino, (size_t)n, off, fi, since);
}

void mfs_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_FLUSH);
    int rc = mfs_vfs_flush(mfs_op_file(fi), fi->lock_owner);

    mfs_notify_settle(m->writes, ino, DROP_WAIT);
    fuse_reply_err(req, -rc);
}

void mfs_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_FSYNC);
    int rc = mfs_vfs_fsync(mfs_op_file(fi));

    (void)datasync;
    mfs_notify_settle(m->writes, ino, DROP_WAIT);
    fuse_reply_err(req, -rc);
}

void mfs_op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    const struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_RELEASE);
    uid_t uid;
    gid_t gid;

    (void)ino;
    if (mfs_vfs_made_in(mfs_op_file(fi), &uid, &gid) != 0)
        mfs_parts_drop(m->parts, fi->fh);
    mfs_vfs_release(mfs_op_file(fi));
    fuse_reply_err(req, 0);
}

void mfs_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
                      struct fuse_file_info *fi)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_FALLOCATE);
    int rc = mfs_vfs_fallocate(mfs_op_file(fi), mode, (uint64_t)off, (uint64_t)len,
                               mfs_op_drop_unsaid(req));

    if (rc == 0) /* likewise */
        mfs_recaller_recall(m->recaller, ino, NULL, NULL);
    if (rc == 0 && !(mode & FALLOC_FL_KEEP_SIZE))
        mfs_replied_extended(m->replied, ino, (uint64_t)(off + len));
    fuse_reply_err(req, -rc);
}

void mfs_op_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi)
{
    int64_t at;

    mfs_op_begin(req, MFS_OP_LSEEK);
    (void)ino;
    at = off < 0 ? -ENXIO : mfs_vfs_lseek(mfs_op_file(fi), (uint64_t)off, whence);
    if (at < 0)
        fuse_reply_err(req, (int)-at);
    else
        fuse_reply_lseek(req, at);
}

void mfs_op_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t off_in,
                            struct fuse_file_info *in, fuse_ino_t ino_out, off_t off_out,
                            struct fuse_file_info *out, size_t len, int flags)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_COPY);
    ssize_t n = -EINVAL;

    (void)ino_in;
    if (flags == 0)
        n = mfs_vfs_copy_range(mfs_op_file(in), (uint64_t)off_in, mfs_op_file(out),
                               (uint64_t)off_out, len, mfs_op_drop_unsaid(req));
    if (n < 0) {
        fuse_reply_err(req, (int)-n);
        return;
    }
    mfs_replied_extended(m->replied, ino_out, (uint64_t)(off_out + n));
    fuse_reply_write(req, (size_t)n);
}
