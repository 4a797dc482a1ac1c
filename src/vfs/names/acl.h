/* POSIX ACLs in the form that the kernel's xattrs have, as far as a file system needs them: what a
 * new file inherits from its directory's default ACL (POSIX.1e draft 17, 23.1.4 "file creation").
 * Pure; input from anywhere. */
#ifndef MFS_VFS_NAMES_ACL_H
#define MFS_VFS_NAMES_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define MFS_ACL_ACCESS  "system.posix_acl_access"
#define MFS_ACL_DEFAULT "system.posix_acl_default"

/* Turns the directory's default ACL (len bytes at acl, changed in place) into the new file's access
 * ACL and narrows the permissions in *mode with it. *needed: the ACL says more than the mode, so it
 * has to be stored. 0, or -EINVAL when it is no valid ACL. */
int mfs_acl_inherit(void *acl, size_t len, mode_t *mode, bool *needed);

#endif
