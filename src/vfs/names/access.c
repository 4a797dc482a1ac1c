#include "vfs/names/access.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int by_acl(struct mfs_vfs *vfs, const struct mfs_attr *attr, const struct mfs_ids *ids,
                  unsigned want)
{
    void *acl = malloc(MFS_XATTR_SIZE_MAX);
    ssize_t n = -ENOMEM;

    if (acl != NULL)
        n = mfs_vfs_getxattr(vfs, attr->ino, MFS_ACL_ACCESS, acl, MFS_XATTR_SIZE_MAX);
    if (n >= 0)
        n = mfs_acl_permits(acl, (size_t)n, attr->gid, ids, want) ? 0 : -EACCES;
    free(acl);
    return (int)n;
}

static int by_mode(uint32_t mode, unsigned shift, unsigned want)
{
    return ((mode >> shift) & want) == want ? 0 : -EACCES;
}

static int as_root(const struct mfs_attr *attr, unsigned want)
{
    bool runs = S_ISDIR(attr->mode) || (attr->mode & (S_IXUSR | S_IXGRP | S_IXOTH));

    return (want & X_OK) && !runs ? -EACCES : 0;
}

int mfs_vfs_access(struct mfs_vfs *vfs, const struct mfs_attr *attr, const struct mfs_ids *ids,
                   unsigned want)
{
    int rc;

    if (ids->uid == 0)
        return as_root(attr, want);
    if (ids->uid == attr->uid)
        return by_mode(attr->mode, 6, want);
    /* An ACL gives nobody more than its mask, which the group's bits stand for. */
    if ((attr->flags & MFS_ATTR_ACL) && (attr->mode & S_IRWXG)) {
        rc = by_acl(vfs, attr, ids, want);
        if (rc != -ENODATA) /* removed meanwhile */
            return rc;
    }
    return by_mode(attr->mode, mfs_ids_in_group(ids, attr->gid) ? 3 : 0, want);
}
