/* Names in directories: lookup and forget, mknod, mkdir, symlink, link, unlink, rmdir, rename. Each
 * answer that shows an entry counts a lookup of its nodeid, which a forget gives back. */
#include <stdio.h>
#include <sys/stat.h>

#include "fuse/ops/ops.h"

void mfs_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_LOOKUP);
    pid_t thread = fuse_req_ctx(req)->pid;
    struct mfs_attr attr;
    bool shown;
    int rc = mfs_retries_lookup(m->retries, thread, mfs_nodeids_ino(parent), name, &attr);

    shown = rc == 0 && mfs_op_shows(req, &attr, false);
    if (rc == 0 && !attr.leased && !shown)
        mfs_lookup_attrs_remember(m->lookup_attrs, thread, &attr);
    mfs_reply_entry(req, rc, parent, name, &attr, shown);
    if (shown)
        mfs_op_shown(m, thread, attr.ino);
}

void mfs_op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups)
{
    struct mfs_fuse *m = fuse_req_userdata(req);

    mfs_nodeids_forget(m->nodeids, ino, lookups);
    fuse_reply_none(req);
}

void mfs_op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    struct mfs_fuse *m = fuse_req_userdata(req);

    for (size_t i = 0; i < count; i++)
        mfs_nodeids_forget(m->nodeids, forgets[i].ino, forgets[i].nlookup);
    fuse_reply_none(req);
}

static void make(fuse_req_t req, struct mfs_fuse *m, fuse_ino_t parent, const char *name,
                 mode_t mode, dev_t rdev)
{
    struct mfs_cred cred = mfs_op_cred(req);
    struct mfs_attr attr;
    int rc = mfs_vfs_mknod(m->vfs, mfs_nodeids_ino(parent), name, mode, rdev, &cred, &attr);

    mfs_op_names_changed(m, parent);
    mfs_reply_entry(req, rc, parent, name, &attr, false);
}

void mfs_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
    make(req, mfs_op_begin(req, MFS_OP_MKNOD), parent, name, mode, rdev);
}

void mfs_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    make(req, mfs_op_begin(req, MFS_OP_MKDIR), parent, name, S_IFDIR | (mode & 07777), 0);
}

void mfs_op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_SYMLINK);
    struct mfs_cred cred = mfs_op_cred(req);
    struct mfs_attr attr;
    int rc = mfs_vfs_symlink(m->vfs, target, mfs_nodeids_ino(parent), name, &cred, &attr);

    mfs_op_names_changed(m, parent);
    mfs_reply_entry(req, rc, parent, name, &attr, false);
}

void mfs_op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_LINK);
    struct mfs_attr attr;
    int rc = mfs_vfs_link(m->vfs, ino, mfs_nodeids_ino(parent), name, &attr);

    mfs_op_names_changed(m, parent);
    mfs_reply_entry(req, rc, parent, name, &attr, false);
}

void mfs_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_UNLINK);
    int rc = mfs_vfs_unlink(m->vfs, mfs_nodeids_ino(parent), name);

    mfs_op_names_changed(m, parent);
    mfs_reply_rc(req, rc);
}

void mfs_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_RMDIR);
    int rc;

    mfs_notify_serve(parent, name, 0, "");
    rc = mfs_vfs_rmdir(m->vfs, mfs_nodeids_ino(parent), name);
    mfs_op_names_changed(m, parent);
    mfs_reply_rc(req, rc);
}

void mfs_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
                   const char *new_name, unsigned flags)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_RENAME);
    struct mfs_cred cred = mfs_op_cred(req);
    int rc;

    mfs_notify_serve(parent, name, new_parent, new_name);
    rc = mfs_vfs_rename(m->vfs, mfs_nodeids_ino(parent), name, mfs_nodeids_ino(new_parent),
                        new_name, flags, &cred);
    mfs_op_names_changed(m, parent);
    if (new_parent != parent)
        mfs_op_names_changed(m, new_parent);
    if (rc == 0)
        mfs_nodeids_renamed(m->nodeids, parent, name, new_parent, new_name,
                            flags & RENAME_EXCHANGE);
    mfs_reply_rc(req, rc);
}
