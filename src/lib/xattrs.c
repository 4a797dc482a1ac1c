/* Extended attributes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "client/layout.h"
#include "lib/lib.h"
#include "lib/rights.h"
#include "vfs/names/acl.h"

#define AT_FLAGS  (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)
#define NAME_MOST 255U

static bool is_layout(const char *name)
{
    return strncmp(name, MEMEFS_XATTR_LAYOUT, strlen(MEMEFS_XATTR_LAYOUT)) == 0;
}

static int look(struct memefs *fs, struct memefs_file *at, const char *path, int at_flags,
                struct mfs_attr *attr)
{
    int rc = mfs_lib_enter(fs);

    if (rc == 0 && (at_flags & ~AT_FLAGS) != 0)
        rc = -EINVAL;
    return rc == 0 ? mfs_lib_look(fs, at, path, at_flags, attr) : rc;
}

static int look_for(struct memefs *fs, struct memefs_file *at, const char *path, const char *name,
                    int at_flags, struct mfs_attr *attr)
{
    if (name == NULL)
        return -EINVAL;
    if (*name == '\0' || strlen(name) > NAME_MOST)
        return -ERANGE;
    return look(fs, at, path, at_flags, attr);
}

static ssize_t get_once(struct memefs *fs, struct memefs_file *at, const char *path,
                        const char *name, void *value, size_t size, int at_flags)
{
    struct mfs_attr attr = {0};
    ssize_t n = look_for(fs, at, path, name, at_flags, &attr);

    if (n == 0 && size > 0 && value == NULL)
        n = -EINVAL;
    if (n == 0)
        n = mfs_rights_xattr(fs->vfs, &fs->ids, &attr, name, false);
    if (n == 0 && is_layout(name))
        n = mfs_client_layout(fs->client, attr.ino, name + strlen(MEMEFS_XATTR_LAYOUT), value,
                              size);
    else if (n == 0)
        n = mfs_vfs_getxattr(fs->vfs, attr.ino, name, value, size);
    return n;
}

ssize_t memefs_getxattrat(struct memefs *fs, struct memefs_file *at, const char *path,
                          const char *name, void *value, size_t size, int at_flags)
{
    unsigned tries = 0;
    ssize_t n;

    do {
        n = get_once(fs, at, path, name, value, size, at_flags);
    } while (mfs_lib_again(n, &tries));
    return (ssize_t)mfs_lib_end(n, "getxattr", path);
}

static ssize_t list_once(struct memefs *fs, struct memefs_file *at, const char *path, char *names,
                         size_t size, int at_flags)
{
    struct mfs_attr attr = {0};
    ssize_t n = look(fs, at, path, at_flags, &attr);

    if (n == 0 && size > 0 && names == NULL)
        n = -EINVAL;
    if (n == 0)
        n = mfs_vfs_listxattr(fs->vfs, attr.ino, fs->ids.uid == 0, names, size);
    return n;
}

ssize_t memefs_listxattrat(struct memefs *fs, struct memefs_file *at, const char *path, char *names,
                           size_t size, int at_flags)
{
    unsigned tries = 0;
    ssize_t n;

    do {
        n = list_once(fs, at, path, names, size, at_flags);
    } while (mfs_lib_again(n, &tries));
    return (ssize_t)mfs_lib_end(n, "listxattr", path);
}

static int set(struct memefs *fs, const struct mfs_attr *attr, const char *name, const void *value,
               size_t size, int flags)
{
    bool acl = strcmp(name, MFS_ACL_ACCESS) == 0 || strcmp(name, MFS_ACL_DEFAULT) == 0;
    struct mfs_cred cred = mfs_lib_cred(fs, attr);

    if (!acl)
        cred.owned = (struct mfs_owned){0};
    return mfs_vfs_setxattr(fs->vfs, attr->ino, name, value, size, flags, &cred);
}

static int set_once(struct memefs *fs, struct memefs_file *at, const char *path, const char *name,
                    const void *value, size_t size, int flags, int at_flags)
{
    struct mfs_attr attr = {0};
    int rc = look_for(fs, at, path, name, at_flags, &attr);

    if (rc == 0 && ((size > 0 && value == NULL) || (flags & ~(XATTR_CREATE | XATTR_REPLACE)) != 0))
        rc = -EINVAL;
    else if (rc == 0 && size > MFS_XATTR_SIZE_MAX)
        rc = -E2BIG;
    else if (rc == 0 && is_layout(name))
        rc = -EOPNOTSUPP;
    if (rc == 0)
        rc = mfs_rights_xattr(fs->vfs, &fs->ids, &attr, name, true);
    if (rc == 0)
        rc = mfs_rights_value(&attr, name, value, size);
    if (rc == 0)
        rc = set(fs, &attr, name, value, size, flags);
    return rc;
}

int memefs_setxattrat(struct memefs *fs, struct memefs_file *at, const char *path, const char *name,
                      const void *value, size_t size, int flags, int at_flags)
{
    unsigned tries = 0;
    int rc;

    do {
        rc = set_once(fs, at, path, name, value, size, flags, at_flags);
    } while (mfs_lib_again(rc, &tries));
    return (int)mfs_lib_end(rc, "setxattr", path);
}

static int remove_once(struct memefs *fs, struct memefs_file *at, const char *path,
                       const char *name, int at_flags)
{
    struct mfs_attr attr = {0};
    int rc = look_for(fs, at, path, name, at_flags, &attr);

    if (rc == 0)
        rc = mfs_rights_xattr(fs->vfs, &fs->ids, &attr, name, true);
    if (rc == 0)
        rc = mfs_vfs_removexattr(fs->vfs, attr.ino, name, NULL);
    return rc;
}

int memefs_removexattrat(struct memefs *fs, struct memefs_file *at, const char *path,
                         const char *name, int at_flags)
{
    unsigned tries = 0;
    int rc;

    do {
        rc = remove_once(fs, at, path, name, at_flags);
    } while (mfs_lib_again(rc, &tries));
    return (int)mfs_lib_end(rc, "removexattr", path);
}
