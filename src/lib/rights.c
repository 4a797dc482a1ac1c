#include "lib/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/posix_acl_xattr.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"

int mfs_rights_make(struct mfs_vfs *vfs, const struct mfs_ids *ids, const struct mfs_attr *dir)
{
    return S_ISDIR(dir->mode) ? mfs_vfs_access(vfs, dir, ids, W_OK | X_OK) : -ENOTDIR;
}

int mfs_rights_remove(struct mfs_vfs *vfs, const struct mfs_ids *ids, const struct mfs_attr *dir,
                      bool *look)
{
    *look = (dir->mode & S_ISVTX) && !mfs_rights_owns(ids, dir);
    return mfs_rights_make(vfs, ids, dir);
}

int mfs_rights_sticky(const struct mfs_ids *ids, const struct mfs_attr *dir,
                      const struct mfs_attr *victim)
{
    return !(dir->mode & S_ISVTX) || mfs_rights_owns(ids, dir) || mfs_rights_owns(ids, victim)
               ? 0
               : -EPERM;
}

int mfs_rights_link(struct mfs_vfs *vfs, const struct mfs_ids *ids, const struct mfs_attr *attr)
{
    if (mfs_rights_owns(ids, attr))
        return 0;
    if (!S_ISREG(attr->mode) || mfs_mode_grants(attr->mode))
        return -EPERM;
    return mfs_vfs_access(vfs, attr, ids, R_OK | W_OK) == 0 ? 0 : -EPERM;
}

int mfs_rights_open(struct mfs_vfs *vfs, const struct mfs_ids *ids, const struct mfs_attr *attr,
                    int flags)
{
    unsigned want = 0;
    int rc;

    if ((flags & O_ACCMODE) != O_WRONLY)
        want |= R_OK;
    if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC))
        want |= W_OK;
    rc = mfs_vfs_access(vfs, attr, ids, want);
    if (rc == 0 && (flags & O_NOATIME) && !mfs_rights_owns(ids, attr))
        rc = -EPERM;
    return rc;
}

bool mfs_rights_owns(const struct mfs_ids *ids, const struct mfs_attr *attr)
{
    return ids->uid == 0 || ids->uid == attr->uid;
}

int mfs_rights_chown(const struct mfs_ids *ids, const struct mfs_attr *attr, uid_t uid, gid_t gid)
{
    if (ids->uid == 0)
        return 0;
    if (uid != (uid_t)-1 && (ids->uid != attr->uid || uid != attr->uid))
        return -EPERM;
    if (gid != (gid_t)-1 &&
        (ids->uid != attr->uid || (gid != attr->gid && !mfs_ids_in_group(ids, gid))))
        return -EPERM;
    return 0;
}

static bool is_in(const char *name, const char *space)
{
    return strncmp(name, space, strlen(space)) == 0;
}

static int user_xattr(struct mfs_vfs *vfs, const struct mfs_ids *ids, const struct mfs_attr *attr,
                      bool write)
{
    /* The mode of others says who may use a device, a fifo or a link, not who may keep words there.
     */
    if (!S_ISREG(attr->mode) && !S_ISDIR(attr->mode))
        return write ? -EPERM : -ENODATA;
    if (write && S_ISDIR(attr->mode) && (attr->mode & S_ISVTX) && !mfs_rights_owns(ids, attr))
        return -EPERM;
    return mfs_vfs_access(vfs, attr, ids, write ? W_OK : R_OK);
}

int mfs_rights_xattr(struct mfs_vfs *vfs, const struct mfs_ids *ids, const struct mfs_attr *attr,
                     const char *name, bool write)
{
    if (is_in(name, "user."))
        return user_xattr(vfs, ids, attr, write);
    if (is_in(name, "trusted.") && ids->uid != 0)
        return write ? -EPERM : -ENODATA;
    if (is_in(name, "security.") && ids->uid != 0)
        return write ? -EPERM : 0;
    if (is_in(name, "system."))
        return !write || mfs_rights_owns(ids, attr) ? 0 : -EPERM;
    if (is_in(name, "trusted.") || is_in(name, "security."))
        return 0;
    return mfs_vfs_access(vfs, attr, ids, write ? W_OK : R_OK);
}

static int check_acl(const struct mfs_attr *attr, const void *value, size_t len)
{
    const struct posix_acl_xattr_header *h = value;

    if (len > 0 && len < sizeof *h)
        return -EINVAL;
    if (len > 0 && mfs_get_le32(value) != POSIX_ACL_XATTR_VERSION)
        return -EOPNOTSUPP;
    if (len > 0 && (len - sizeof *h) % sizeof(struct posix_acl_xattr_entry) != 0)
        return -EINVAL;
    return S_ISLNK(attr->mode) ? -EOPNOTSUPP : 0;
}

/* Those of files, and those for one user name space. */
static int check_caps(const void *value, size_t len)
{
    uint32_t revision = len >= 4 ? mfs_get_le32(value) & VFS_CAP_REVISION_MASK : 0;
    bool good = (len == XATTR_CAPS_SZ_2 && revision == VFS_CAP_REVISION_2) ||
                (len == XATTR_CAPS_SZ_3 && revision == VFS_CAP_REVISION_3);

    return good ? 0 : -EINVAL;
}

int mfs_rights_value(const struct mfs_attr *attr, const char *name, const void *value, size_t len)
{
    if (strcmp(name, MFS_ACL_ACCESS) == 0 || strcmp(name, MFS_ACL_DEFAULT) == 0)
        return check_acl(attr, value, len);
    return strcmp(name, "security.capability") == 0 ? check_caps(value, len) : 0;
}
