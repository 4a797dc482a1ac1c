/* POSIX ACLs in the form that the kernel's xattrs have, as far as a file system needs them: what a
 * new file inherits from its directory's default ACL (POSIX.1e draft 17, 23.1.4 "file creation"),
 * and what an access ACL permits (acl(5)). Pure; input from anywhere. */
#ifndef MFS_VFS_NAMES_ACL_H
#define MFS_VFS_NAMES_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define MFS_ACL_ACCESS  "system.posix_acl_access"
#define MFS_ACL_DEFAULT "system.posix_acl_default"

/* On behalf of which user, and which groups. */
struct mfs_ids {
    uid_t uid;
    gid_t gid;
    const gid_t *groups; /* further ones */
    size_t ngroups;
};

bool mfs_ids_in_group(const struct mfs_ids *ids, gid_t gid);

/* Does the access ACL of a file of group `gid` permit `want` (R_OK, W_OK, X_OK) to one who is not
 * its owner? What is no valid ACL permits nothing. */
bool mfs_acl_permits(const void *acl, size_t len, gid_t gid, const struct mfs_ids *ids,
                     unsigned want);

/* Turns the directory's default ACL (len bytes at acl, changed in place) into the new file's access
 * ACL and narrows the permissions in *mode with it. *needed: the ACL says more than the mode, so it
 * has to be stored. 0, or -EINVAL when it is no valid ACL. */
int mfs_acl_inherit(void *acl, size_t len, mode_t *mode, bool *needed);

#endif
