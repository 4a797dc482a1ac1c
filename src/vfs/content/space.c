/* Room in files: fallocate, holes, and copying from file to file. */
#include <errno.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <unistd.h>

#include "data/stripes/stripes.h"
#include "vfs/content/content.h"
#include "vfs/vnode/file.h"
#include "vfs/content/privileges.h"
#include "vfs/content/tail.h"

#define COPY_CHUNK (1U << 20)

/* Memory is given to data when they come; what can be promised is that there is room now. */
static int check_room(struct mfs_vfs *vfs, uint64_t bytes)
{
    struct mfs_meta_space space;
    int rc = mfs_meta_statfs(vfs->meta, &space);

    if (rc < 0)
        return rc;
    return space.used < space.total && bytes <= space.total - space.used ? 0 : -ENOSPC;
}

static int commit(struct mfs_vnode *v, struct mfs_commit *c)
{
    struct mfs_attr attr;
    uint64_t from;
    int rc;

    c->mtime = mfs_clock_real();
    atomic_fetch_add(&v->changing, 1);
    rc = mfs_meta_commit(v->vfs->meta, v->ino, c, &from, &attr);
    if (rc == 0)
        mfs_vnode_carry(v, from, &attr);
    atomic_fetch_sub(&v->changing, 1);
    if (rc == 0)
        mfs_meta_settle(v->vfs->meta, v->ino);
    return rc;
}

static int allocate(struct mfs_vnode *v, uint64_t off, uint64_t len, bool keep_size, uint32_t drop)
{
    uint64_t end = off + len;
    struct mfs_commit c = {
        .end = keep_size ? 0 : end, .room = '+', .allocated = {off, end}, .drop = drop};
    struct mfs_attr attr;
    int rc = mfs_vfs_getattr(v->vfs, v->ino, &attr);

    if (rc == 0 && end > attr.size)
        rc = check_room(v->vfs, end - attr.size);
    if (rc == 0)
        rc = mfs_privileges_drop(v->vfs, &attr, drop);
    return rc < 0 ? rc : commit(v, &c);
}

/* Nothing is touched beyond the size, where an append has its place, whatever is stored there: so
 * no appender has to wait for it. After an error some of it may be zeros: no mount is to go on with
 * the pages that it has. */
static int zero(struct mfs_vnode *v, uint64_t off, uint64_t len, bool keep_size, bool punch,
                uint32_t drop)
{
    struct mfs_commit c = {.end = keep_size ? 0 : off + len,
                           .room = punch ? '-' : '+',
                           .allocated = {off, off + len},
                           .drop = drop};
    struct mfs_attr attr;
    int rc = mfs_meta_getattr(v->vfs->meta, v->ino, &attr), committed;
    uint64_t end;

    if (rc == 0)
        rc = mfs_privileges_drop(v->vfs, &attr, drop);
    if (rc < 0)
        return rc;
    end = attr.data_end < attr.size ? attr.data_end : attr.size;
    c.zeroed = (struct mfs_range){off, off + len < end ? off + len : end};
    rc = mfs_stripes_punch(v->vfs->store, v->ino, off, len, end, NULL);
    if (rc < 0)
        c = (struct mfs_commit){0};
    mfs_writeback_freed(v->vfs->wb);
    mfs_vnode_changed(v);
    committed = commit(v, &c);
    if (rc < 0)
        mfs_vnode_drop_pages(v);
    return rc < 0 ? rc : committed;
}

int mfs_vfs_fallocate(struct mfs_file *f, int mode, uint64_t off, uint64_t len, uint32_t drop)
{
    struct mfs_vnode *v = f->node;
    bool keep_size = mode & FALLOC_FL_KEEP_SIZE;
    int rc;

    mfs_file_answer_taken(f);
    if (len > mfs_vnode_size_max(v) || off > mfs_vnode_size_max(v) - len)
        return -EFBIG;
    /* First what was written, so that it neither survives the punch nor moves the times back. */
    rc = mfs_vnode_flush(v, &f->errors);
    if (rc < 0)
        return rc;
    switch (mode & ~FALLOC_FL_KEEP_SIZE) {
    case 0:
        rc = allocate(v, off, len, keep_size, drop);
        break;
    case FALLOC_FL_PUNCH_HOLE:
        return keep_size ? zero(v, off, len, true, true, drop) : -EOPNOTSUPP;
    case FALLOC_FL_ZERO_RANGE:
        rc = zero(v, off, len, keep_size, false, drop);
        break;
    default:
        return -EOPNOTSUPP;
    }
    if (rc == 0 && !keep_size)
        mfs_tail_made(v, off + len, false);
    return rc;
}

int64_t mfs_vfs_lseek(struct mfs_file *f, uint64_t off, int whence)
{
    struct mfs_vnode *v = f->node;
    struct mfs_attr attr;
    uint64_t result = 0;
    int rc;

    if (whence != SEEK_DATA && whence != SEEK_HOLE)
        return -EINVAL;
    mfs_vnode_flush(v, NULL);
    rc = mfs_vfs_getattr(v->vfs, v->ino, &attr);
    if (rc == 0)
        rc = mfs_content_seek(v, &attr, off, whence, &result);
    return rc < 0 ? rc : (int64_t)result;
}

ssize_t mfs_vfs_copy_range(struct mfs_file *in, uint64_t off_in, struct mfs_file *out,
                           uint64_t off_out, size_t len, uint32_t drop)
{
    char *buf = malloc(COPY_CHUNK);
    ssize_t n = buf != NULL ? 0 : -ENOMEM;
    size_t done = 0;

    if (len > MFS_VFS_COPY_MAX)
        len = MFS_VFS_COPY_MAX;
    while (n >= 0 && done < len) {
        size_t want = len - done < COPY_CHUNK ? len - done : COPY_CHUNK;

        n = mfs_vfs_read(in, buf, want, off_in + done, true, NULL);
        if (n <= 0)
            break;
        n = mfs_vfs_write(out, buf, (size_t)n, off_out + done, 0, drop);
        if (n > 0)
            done += (size_t)n;
    }
    free(buf);
    return done > 0 ? (ssize_t)done : n;
}
