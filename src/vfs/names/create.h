/* What a new inode gets from its directory and from its creator. */
#ifndef MFS_VFS_NAMES_CREATE_H
#define MFS_VFS_NAMES_CREATE_H

#include "vfs/names/acl.h"
#include "vfs/vnode/vnode.h"

#define MFS_CREATE_ACLS 2

struct mfs_inherit {
    struct mfs_new new;
    struct mfs_attr dir; /* of the directory, as it is now */
    struct mfs_xattr xattr[MFS_CREATE_ACLS];
    void *acl, *default_acl; /* what the xattrs point to */
};

/* Fills in->new for a file of `mode` (type and the permissions asked for) in `parent`. 0 or -errno
 * (then there is nothing to free). */
int mfs_inherit_init(struct mfs_inherit *in, struct mfs_vfs *vfs, uint64_t parent, mode_t mode,
                     const struct mfs_cred *cred);
void mfs_inherit_fini(struct mfs_inherit *in);

#endif
