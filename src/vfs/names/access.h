/* Permission checks, for callers without a kernel that makes them: path_resolution(7), acl(5). */
#ifndef MFS_VFS_NAMES_ACCESS_H
#define MFS_VFS_NAMES_ACCESS_H

#include "vfs/names/acl.h"
#include "vfs/vfs.h"

/* 0 if the file with these attributes permits `want` (R_OK, W_OK, X_OK; for a directory X_OK is
 * search), else -EACCES, or a negative errno when its ACL can't be read. The user 0 may do all but
 * execute what no user may. */
int mfs_vfs_access(struct mfs_vfs *vfs, const struct mfs_attr *attr, const struct mfs_ids *ids,
                   unsigned want);

#endif
