/* Names in directories: lookup, mknod, symlink, link, unlink, rmdir, rename. Thin: lengths are
 * checked, new inodes inherit group and ACL (names/create.h), the metadata's call is made, and
 * attributes of files that are open here get what this mount has not committed yet. -ESTALE becomes
 * -ENOENT when the directory itself is gone. No state of its own; unlink and rename count in
 * vfs->removals that a name has gone. */
#include <errno.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>

#include "vfs/names/create.h"
#include "vfs/names/hints.h"
#include "vfs/names/listed.h"
#include "vfs/content/tail.h"

static int check_name(const char *name)
{
    return strlen(name) > MFS_NAME_LEN_MAX ? -ENAMETOOLONG : 0;
}

/* A directory that is gone has no names; the kernel may still hold it, as a process's working
 * directory. -ESTALE of another inode stays: then the path is to be walked again. */
static int in_dir(struct mfs_vfs *vfs, uint64_t parent, int rc)
{
    struct mfs_attr attr;

    if (rc != -ESTALE)
        return rc;
    return mfs_meta_getattr(vfs->meta, parent, &attr) == -ESTALE ? -ENOENT : rc;
}

void mfs_vfs_overlay_attr(struct mfs_vfs *vfs, struct mfs_attr *attr)
{
    struct mfs_vnode *v = S_ISREG(attr->mode) ? mfs_vnode_find(vfs, attr->ino) : NULL;

    if (v == NULL)
        return;
    mfs_vnode_overlay(v, attr);
    mfs_tail_tell(v, &attr->size);
    mfs_vnode_put(v);
}

int mfs_vfs_lookup(struct mfs_vfs *vfs, uint64_t parent, const char *name, struct mfs_attr *attr)
{
    int rc = check_name(name);
    bool asks = rc == 0 && mfs_listed_look(vfs->listed, vfs->meta, parent, name);

    if (rc == 0)
        rc = in_dir(vfs, parent, mfs_meta_lookup(vfs->meta, parent, name, attr));
    if (rc == 0 && asks && S_ISREG(attr->mode))
        mfs_listed_found(vfs->listed, parent);
    if (rc == 0)
        mfs_vfs_overlay_attr(vfs, attr);
    return rc;
}

bool mfs_vfs_is_leased(struct mfs_vfs *vfs, const struct mfs_attr *attr)
{
    return mfs_meta_is_leased(vfs->meta, attr);
}

int mfs_vfs_mknod(struct mfs_vfs *vfs, uint64_t parent, const char *name, mode_t mode, dev_t rdev,
                  const struct mfs_cred *cred, struct mfs_attr *attr)
{
    struct mfs_inherit in;
    int rc = check_name(name);

    if (rc < 0)
        return rc;
    rc = mfs_inherit_init(&in, vfs, parent, mode, cred);
    if (rc < 0)
        return rc;
    if (S_ISCHR(mode) || S_ISBLK(mode))
        in.new.rdev = (uint32_t)rdev; /* a dev_t's low half is the kernel's new_encode_dev */
    mfs_hints_place(vfs, parent, name, &in.new);
    rc = mfs_meta_mknod(vfs->meta, parent, name, &in.new, attr);
    mfs_inherit_fini(&in);
    return in_dir(vfs, parent, rc);
}

int mfs_vfs_symlink(struct mfs_vfs *vfs, const char *target, uint64_t parent, const char *name,
                    const struct mfs_cred *cred, struct mfs_attr *attr)
{
    struct mfs_inherit in;
    int rc = check_name(name);

    if (rc == 0 && strlen(target) > MFS_SYMLINK_MAX)
        rc = -ENAMETOOLONG;
    if (rc < 0)
        return rc;
    rc = mfs_inherit_init(&in, vfs, parent, S_IFLNK | 0777, cred);
    if (rc < 0)
        return rc;
    in.new.target = target;
    rc = mfs_meta_mknod(vfs->meta, parent, name, &in.new, attr);
    mfs_inherit_fini(&in);
    return in_dir(vfs, parent, rc);
}

int mfs_vfs_link(struct mfs_vfs *vfs, uint64_t ino, uint64_t parent, const char *name,
                 struct mfs_attr *attr)
{
    int rc = check_name(name);

    if (rc == 0)
        rc = in_dir(vfs, parent, mfs_meta_link(vfs->meta, ino, parent, name, attr));
    if (rc == 0)
        mfs_vfs_overlay_attr(vfs, attr);
    return rc;
}

int mfs_vfs_unlink(struct mfs_vfs *vfs, uint64_t parent, const char *name)
{
    int rc = check_name(name);

    if (rc < 0)
        return rc;
    atomic_fetch_add(&vfs->removals, 1);
    return in_dir(vfs, parent, mfs_meta_unlink(vfs->meta, parent, name));
}

int mfs_vfs_rmdir(struct mfs_vfs *vfs, uint64_t parent, const char *name)
{
    int rc = check_name(name);

    return rc < 0 ? rc : in_dir(vfs, parent, mfs_meta_rmdir(vfs->meta, parent, name));
}

/* What overlayfs takes for "nothing here". A directory's default ACL has nothing to say about what
 * must not be used. */
static int rename_leaving(struct mfs_vfs *vfs, uint64_t parent, const char *name,
                          uint64_t new_parent, const char *new_name, unsigned flags,
                          const struct mfs_cred *cred)
{
    struct mfs_inherit in;
    int rc = mfs_inherit_init(&in, vfs, parent, S_IFCHR, cred);

    if (rc < 0)
        return rc;
    in.new.nxattrs = 0;
    rc = mfs_meta_rename_leaving(vfs->meta, parent, name, new_parent, new_name, flags, &in.new);
    mfs_inherit_fini(&in);
    return rc;
}

int mfs_vfs_rename(struct mfs_vfs *vfs, uint64_t parent, const char *name, uint64_t new_parent,
                   const char *new_name, unsigned flags, const struct mfs_cred *cred)
{
    int rc = check_name(name);

    if (rc == 0)
        rc = check_name(new_name);
    if (rc < 0)
        return rc;
    atomic_fetch_add(&vfs->removals, 1);
    if (flags & RENAME_WHITEOUT)
        rc =
            rename_leaving(vfs, parent, name, new_parent, new_name, flags & ~RENAME_WHITEOUT, cred);
    else
        rc = mfs_meta_rename(vfs->meta, parent, name, new_parent, new_name, flags);
    return in_dir(vfs, new_parent, in_dir(vfs, parent, rc));
}
