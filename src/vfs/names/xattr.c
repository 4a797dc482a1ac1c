/* Extended attributes, ACLs among them. Names are checked as Linux does; "trusted." is listed only
 * for the privileged; a file that is open here learns its new flags at once. Giving a file
 * capabilities commits what was written before, so that they are not taken away by an old write. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "vfs/names/acl.h"
#include "vfs/names/hints.h"
#include "vfs/content/privileges.h"
#include "vfs/vnode/vnode.h"

#define SECURITY_CAPS "security.capability"

/* As Linux: a name without a known prefix is -EOPNOTSUPP, a prefix alone is no name. */
static int check_xattr_name(const char *name)
{
    static const char *const prefixes[] = {"user.", "trusted.", "security."};

    if (strcmp(name, MFS_ACL_ACCESS) == 0 || strcmp(name, MFS_ACL_DEFAULT) == 0)
        return 0;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t n = strlen(prefixes[i]);

        if (strncmp(name, prefixes[i], n) == 0) {
            if (name[n] == '\0')
                return -EINVAL;
            return strlen(name) > MFS_NAME_LEN_MAX ? -ERANGE : 0;
        }
    }
    return -EOPNOTSUPP;
}

/* The kernel asks for a file's capabilities before each write, to take them away. While the file is
 * open for writing here its flags are known from the open and from every commit since, so "it has
 * none" needs no question. */
static bool surely_no_caps(struct mfs_vfs *vfs, uint64_t ino)
{
    struct mfs_vnode *v = mfs_vnode_find(vfs, ino);
    struct mfs_attr attr;
    bool sure = v != NULL && atomic_load(&v->writers) > 0 && mfs_vnode_attr(v, &attr) &&
                (attr.flags & (MFS_ATTR_SECCAPS | MFS_ATTR_XATTR)) == 0;

    mfs_vnode_put(v);
    return sure;
}

/* Hints are no attributes that are kept as such. */
ssize_t mfs_vfs_getxattr(struct mfs_vfs *vfs, uint64_t ino, const char *name, void *buf, size_t cap)
{
    const struct mfs_hint_kind *hint = mfs_hint_kind(name);
    int rc = check_xattr_name(name);

    if (rc < 0)
        return rc;
    if (hint != NULL)
        return mfs_hints_get(vfs, ino, hint, buf, cap);
    if (cap == 0 && strcmp(name, SECURITY_CAPS) == 0 && surely_no_caps(vfs, ino))
        return -ENODATA;
    return mfs_meta_getxattr(vfs->meta, ino, name, buf, cap);
}

/* Takes the names that start with `prefix` out of the list; returns what is left. */
static size_t drop_names(char *list, size_t len, const char *prefix)
{
    size_t out = 0;

    for (size_t at = 0; at < len;) {
        size_t n = strnlen(list + at, len - at) + 1;

        if (at + n > len)
            break;
        if (strncmp(list + at, prefix, strlen(prefix)) != 0) {
            memmove(list + out, list + at, n);
            out += n;
        }
        at += n;
    }
    return out;
}

ssize_t mfs_vfs_listxattr(struct mfs_vfs *vfs, uint64_t ino, bool trusted, char *buf, size_t cap)
{
    char all[MFS_XATTR_SIZE_MAX];
    ssize_t n;

    if (trusted)
        return mfs_meta_listxattr(vfs->meta, ino, buf, cap);
    n = mfs_meta_listxattr(vfs->meta, ino, all, sizeof all);
    if (n <= 0)
        return n == -ERANGE ? -E2BIG : n;
    n = (ssize_t)drop_names(all, (size_t)n, "trusted.");
    if (cap == 0)
        return n;
    if ((size_t)n > cap)
        return -ERANGE;
    memcpy(buf, all, (size_t)n);
    return n;
}

/* The flags of an open inode shall follow what was just done to its attributes. */
static void refresh(struct mfs_vfs *vfs, uint64_t ino)
{
    struct mfs_vnode *v = mfs_vnode_find(vfs, ino);
    struct mfs_attr attr;

    if (v != NULL && mfs_meta_getattr(vfs->meta, ino, &attr) == 0)
        mfs_vnode_learn(v, &attr, false);
    mfs_vnode_put(v);
}

int mfs_vfs_setxattr(struct mfs_vfs *vfs, uint64_t ino, const char *name, const void *value,
                     size_t len, int flags, const struct mfs_cred *cred)
{
    bool access = strcmp(name, MFS_ACL_ACCESS) == 0, caps = strcmp(name, SECURITY_CAPS) == 0;
    struct mfs_vnode *v = caps ? mfs_vnode_find(vfs, ino) : NULL;
    int rc = check_xattr_name(name);

    if (rc == 0 && mfs_hint_name_is_kept(name))
        return mfs_hints_set(vfs, ino, name, value, len, flags);
    if (rc == 0 && len > MFS_XATTR_SIZE_MAX)
        rc = -E2BIG;
    if (rc == 0 && v != NULL)
        mfs_privileges_before_grant(v);
    if (rc == 0)
        rc = mfs_meta_setxattr(vfs->meta, ino, name, value, len, flags, access && !cred->in_group,
                               &cred->owned);
    if (rc == 0)
        refresh(vfs, ino);
    if (v != NULL)
        mfs_vnode_flush(v, NULL); /* a write under way did not know */
    mfs_vnode_put(v);
    return rc;
}

int mfs_vfs_removexattr(struct mfs_vfs *vfs, uint64_t ino, const char *name,
                        const struct mfs_owned *owned)
{
    const struct mfs_hint_kind *hint = mfs_hint_kind(name);
    int rc = check_xattr_name(name);

    if (hint != NULL)
        return mfs_hints_remove(vfs, ino, hint);
    if (rc == 0)
        rc = mfs_meta_removexattr(vfs->meta, ino, name, owned);
    if (rc == 0)
        refresh(vfs, ino);
    return rc;
}
