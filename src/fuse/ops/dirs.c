#include <errno.h>

#include "fuse/ops/ops.h"

static struct mfs_dirh *dir_of(const struct fuse_file_info *fi)
{
    return (struct mfs_dirh *)(uintptr_t)fi->fh;
}

void mfs_op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_OPENDIR);
    struct mfs_dirh *dir;
    int rc = mfs_vfs_opendir(m->vfs, mfs_nodeids_ino(ino), fi->flags, &dir);

    if (rc < 0) {
        fuse_reply_err(req, -rc);
        return;
    }
    fi->fh = (uintptr_t)dir;
    if (fuse_reply_open(req, fi) == -ENOENT)
        mfs_vfs_releasedir(dir);
}

void mfs_op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    mfs_op_begin(req, MFS_OP_RELEASEDIR);
    (void)ino;
    mfs_vfs_releasedir(dir_of(fi));
    fuse_reply_err(req, 0);
}

/* What is shown may be used for a short time only (MFS_META_SHOWN), so no more is shown at once
 * than a program gets through by then. */
#define PLUS_MAX (128U << 10) /* some 800 entries */

/* A reply that is being filled. */
struct page {
    fuse_req_t req;
    struct mfs_fuse *m;
    fuse_ino_t dir;
    char *buf;
    size_t size, used;
    bool plus;
};

static bool add(void *arg, const struct mfs_dirent *entry, const struct mfs_attr *attr,
                uint64_t cookie)
{
    struct page *p = arg;
    struct fuse_entry_param e = {.attr = {.st_ino = entry->ino, .st_mode = entry->type}};
    char *to = p->buf + p->used;
    size_t room = p->size - p->used, n;

    /* Without an ino the kernel takes the name and the type and looks nothing up. */
    if (attr != NULL) {
        mfs_recaller_forget_acl(p->m->recaller, attr->ino);
        mfs_fill_entry(p->m, p->dir, entry->name, attr, &e);
        if (p->m->timeout == 0)
            e.attr_timeout = e.entry_timeout = MFS_OP_SECONDS(MFS_META_SHOWN);
    }
    if (p->plus)
        n = fuse_add_direntry_plus(p->req, to, room, entry->name, &e, (off_t)cookie);
    else
        n = fuse_add_direntry(p->req, to, room, entry->name, &e.attr, (off_t)cookie);
    if ((!p->plus || n > room) && e.ino != 0) /* the kernel does not get the nodeid */
        mfs_nodeids_forget(p->m->nodeids, e.ino, 1);
    if (n > room)
        return false;
    p->used += n;
    return true;
}

static void list(fuse_req_t req, struct mfs_fuse *m, fuse_ino_t ino, size_t size, off_t off,
                 struct fuse_file_info *fi, bool plus)
{
    struct page p = {.req = req, .m = m, .dir = ino, .size = size, .plus = plus};
    int rc = -ENOMEM;

    p.buf = mfs_op_buffer(size);
    if (p.buf != NULL)
        rc = mfs_vfs_readdir(dir_of(fi), (uint64_t)off, plus, add, &p);
    if (rc < 0)
        fuse_reply_err(req, -rc);
    else
        fuse_reply_buf(req, p.buf, p.used);
}

void mfs_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                    struct fuse_file_info *fi)
{
    list(req, mfs_op_begin(req, MFS_OP_READDIR), ino, size, off, fi, false);
}

void mfs_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                        struct fuse_file_info *fi)
{
    list(req, mfs_op_begin(req, MFS_OP_READDIRPLUS), ino, size < PLUS_MAX ? size : PLUS_MAX, off,
         fi, true);
}
