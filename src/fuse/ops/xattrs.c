/* Extended attributes, ACLs among them. Sizes are answered as getxattr(2) has it. Which owner the
 * inode has to have is decided here, by the attribute and the caller's capabilities, and checked by
 * its home partition with the change. */
#include <errno.h>
#include <string.h>

#include <linux/capability.h>

#include "client/layout.h"
#include "fuse/ops/ops.h"
#include "vfs/names/acl.h"

/* An inode that is gone, but not for the kernel, has no attributes: walking away from a removed
 * directory must not fail for its ACL. */
static ssize_t of_removed(struct mfs_fuse *m, uint64_t ino, ssize_t n, int none)
{
    struct mfs_attr attr;

    return n == -ESTALE && mfs_replied_recall(m->replied, ino, &attr) ? none : n;
}

static void reply_value(fuse_req_t req, ssize_t n, const void *buf, size_t size)
{
    if (n < 0)
        mfs_reply_rc(req, (int)n);
    else if (size == 0)
        fuse_reply_xattr(req, (size_t)n);
    else
        fuse_reply_buf(req, buf, (size_t)n);
}

void mfs_op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_GETXATTR);
    size_t cap = size < MFS_XATTR_SIZE_MAX ? size : MFS_XATTR_SIZE_MAX;
    void *buf = mfs_op_buffer(MFS_XATTR_SIZE_MAX);
    ssize_t n;

    ino = mfs_nodeids_ino(ino);
    if (buf == NULL)
        n = -ENOMEM;
    else if (strncmp(name, MEMEFS_XATTR_LAYOUT, strlen(MEMEFS_XATTR_LAYOUT)) == 0)
        n = mfs_client_layout(m->client, ino, name + strlen(MEMEFS_XATTR_LAYOUT), buf, cap);
    else {
        if (strcmp(name, MFS_ACL_ACCESS) == 0)
            mfs_recalls_acl(m->recalls, ino);
        n = mfs_vfs_getxattr(m->vfs, ino, name, buf, cap);
    }
    reply_value(req, of_removed(m, ino, n, -ENODATA), buf, size);
}

void mfs_op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_LISTXATTR);
    size_t cap = size < MFS_XATTR_SIZE_MAX ? size : MFS_XATTR_SIZE_MAX;
    void *buf = mfs_op_buffer(MFS_XATTR_SIZE_MAX);
    ssize_t n = -ENOMEM;

    ino = mfs_nodeids_ino(ino);
    if (buf != NULL)
        n = mfs_vfs_listxattr(m->vfs, ino, fuse_req_ctx(req)->uid == 0, buf, cap);
    reply_value(req, of_removed(m, ino, n, 0), buf, size);
}

/* The kernel leaves it to us to take set-group-ID from a file whose ACL is set by a stranger to its
 * group. */
static int look_at_group(fuse_req_t req, struct mfs_fuse *m, fuse_ino_t ino, struct mfs_cred *cred)
{
    struct mfs_attr attr;
    int rc;

    if (cred->uid == 0)
        return 0;
    rc = mfs_vfs_getattr(m->vfs, ino, &attr);
    if (rc == 0)
        cred->in_group = mfs_op_in_group(req, attr.gid);
    return rc;
}

/* The owner that an inode has to have to get that attribute: an ACL is its owner's. Of others the
 * kernel asks for the right to write, and for that what the owner is now, or for capabilities. */
static struct mfs_owned owned_for(fuse_req_t req, const char *name)
{
    bool acl = strcmp(name, MFS_ACL_ACCESS) == 0 || strcmp(name, MFS_ACL_DEFAULT) == 0;

    return acl ? mfs_op_owned(req) : (struct mfs_owned){0};
}

/* Is the process one that need not be the owner? Then of its present owner. */
static bool look_at_process(fuse_req_t req, struct mfs_fuse *m, uint64_t ino,
                            struct mfs_owned *owned)
{
    struct mfs_attr now;

    if (!owned->user || mfs_vfs_getattr(m->vfs, ino, &now) < 0 ||
        !mfs_op_may_as_owner(req, CAP_FOWNER, &now))
        return false;
    owned->uid = now.uid;
    return true;
}

void mfs_op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
                     size_t size, int flags)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_SETXATTR);
    struct mfs_cred cred = mfs_op_cred(req);
    int rc = 0;

    ino = mfs_nodeids_ino(ino);
    cred.owned = owned_for(req, name);
    if (strcmp(name, MFS_ACL_ACCESS) == 0)
        rc = look_at_group(req, m, ino, &cred);
    if (rc == 0)
        rc = mfs_vfs_setxattr(m->vfs, ino, name, value, size, flags, &cred);
    if (rc == -EPERM && look_at_process(req, m, ino, &cred.owned))
        rc = mfs_vfs_setxattr(m->vfs, ino, name, value, size, flags, &cred);
    mfs_op_dir_changed(m, ino);
    mfs_reply_rc(req, rc);
}

void mfs_op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_REMOVEXATTR);
    struct mfs_owned owned = owned_for(req, name);
    int rc = mfs_vfs_removexattr(m->vfs, mfs_nodeids_ino(ino), name, &owned);

    if (rc == -EPERM && look_at_process(req, m, mfs_nodeids_ino(ino), &owned))
        rc = mfs_vfs_removexattr(m->vfs, mfs_nodeids_ino(ino), name, &owned);
    mfs_op_dir_changed(m, ino);
    mfs_reply_rc(req, rc);
}
