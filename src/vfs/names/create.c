#include "vfs/names/create.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"

#define PARENT_MAX_AGE (1 * MFS_SEC) /* without a lease */

/* The directory's default ACL into a new buffer; 0 bytes when it has none (any more). */
static ssize_t default_acl(struct mfs_vfs *vfs, uint64_t parent, void **acl)
{
    ssize_t n = mfs_meta_getxattr(vfs->meta, parent, MFS_ACL_DEFAULT, NULL, 0);

    *acl = NULL;
    if (n <= 0)
        return n == -ENODATA ? 0 : n;
    *acl = malloc((size_t)n);
    if (*acl == NULL)
        return -ENOMEM;
    n = mfs_meta_getxattr(vfs->meta, parent, MFS_ACL_DEFAULT, *acl, (size_t)n);
    return n == -ENODATA ? 0 : n;
}

static void add_xattr(struct mfs_inherit *in, const char *name, const void *value, size_t len)
{
    in->xattr[in->new.nxattrs++] = (struct mfs_xattr){name, value, len};
    in->new.xattrs = in->xattr;
}

static int inherit_acl(struct mfs_inherit *in, struct mfs_vfs *vfs, uint64_t parent, mode_t *mode)
{
    ssize_t n = default_acl(vfs, parent, &in->default_acl);
    bool needed;
    int rc;

    if (n <= 0)
        return (int)n;
    in->acl = malloc((size_t)n);
    if (in->acl == NULL)
        return -ENOMEM;
    memcpy(in->acl, in->default_acl, (size_t)n);
    rc = mfs_acl_inherit(in->acl, (size_t)n, mode, &needed);
    if (rc < 0)
        return rc;
    if (needed)
        add_xattr(in, MFS_ACL_ACCESS, in->acl, (size_t)n);
    if (S_ISDIR(*mode))
        add_xattr(in, MFS_ACL_DEFAULT, in->default_acl, (size_t)n);
    return 1;
}

/* As System V and Linux do it: in a set-group-ID directory everything gets its group, and a
 * directory the bit, too; a file that would run as that group keeps its own bit only for members.
 */
static void inherit_group(struct mfs_inherit *in, const struct mfs_attr *dir, mode_t *mode,
                          const struct mfs_cred *cred)
{
    in->new.gid = cred->gid;
    if (!(dir->mode & S_ISGID))
        return;
    in->new.gid = dir->gid;
    if (S_ISDIR(*mode))
        *mode |= S_ISGID;
    else if ((*mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && !cred->in_group)
        *mode &= ~(mode_t)S_ISGID;
}

int mfs_inherit_init(struct mfs_inherit *in, struct mfs_vfs *vfs, uint64_t parent, mode_t mode,
                     const struct mfs_cred *cred)
{
    struct mfs_attr *dir = &in->dir;
    int rc;

    memset(in, 0, sizeof *in);
    rc = mfs_meta_dir(vfs->meta, parent, vfs->opts.leases ? 0 : PARENT_MAX_AGE, dir);
    if (rc < 0)
        return rc == -ESTALE ? -ENOENT : rc;
    inherit_group(in, dir, &mode, cred);
    if (!S_ISLNK(mode)) {
        rc = dir->flags & MFS_ATTR_DEFACL ? inherit_acl(in, vfs, parent, &mode) : 0;
        if (rc < 0) {
            mfs_inherit_fini(in);
            return rc;
        }
        if (rc == 0)
            mode &= ~(cred->umask & 0777);
    }
    if (mfs_mode_has_hints(mode))
        in->new.hints = dir->hints & ~MFS_HINT_TOGETHER;
    if (S_ISDIR(mode))
        in->new.ttl = dir->ttl;
    in->new.mode = (S_IFMT | 07777) & mode; /* of a caller without a kernel, maybe */
    in->new.uid = cred->uid;
    return 0;
}

void mfs_inherit_fini(struct mfs_inherit *in)
{
    free(in->acl);
    free(in->default_acl);
}
