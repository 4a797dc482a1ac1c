/* What a kernel asks before it lets a call reach a file system (Linux: fs/namei.c, fs/attr.c,
 * fs/xattr.c), for a connection's ids. User 0 may do all but execute what none may; other users
 * have no capabilities here. Whether a file permits reading, writing or a search is
 * vfs/names/access.h. */
#ifndef MFS_LIB_RIGHTS_H
#define MFS_LIB_RIGHTS_H

#include "vfs/names/access.h"

/* May names be made in the directory? 0, -EACCES, … */
int mfs_rights_make(struct mfs_vfs *vfs, const struct mfs_ids *ids, const struct mfs_attr *dir);

/* May names be removed from it? *look: only if the inode is theirs or the directory is, by
 * mfs_rights_sticky. 0, -EACCES, … */
int mfs_rights_remove(struct mfs_vfs *vfs, const struct mfs_ids *ids, const struct mfs_attr *dir,
                      bool *look);
/* In a sticky directory. 0 or -EPERM. */
int mfs_rights_sticky(const struct mfs_ids *ids, const struct mfs_attr *dir,
                      const struct mfs_attr *victim);

/* As of protected_hardlinks (proc_sys_fs(5)), which Debian sets: a file of another user gets
 * another name only if it is a plain file that may be read and written, and gives no rights. */
int mfs_rights_link(struct mfs_vfs *vfs, const struct mfs_ids *ids, const struct mfs_attr *attr);

/* To open with these flags of open(2): -EACCES; -EPERM (O_NOATIME of another's file). */
int mfs_rights_open(struct mfs_vfs *vfs, const struct mfs_ids *ids, const struct mfs_attr *attr,
                    int flags);

bool mfs_rights_owns(const struct mfs_ids *ids, const struct mfs_attr *attr);

/* To change owner and group to these (−1: as it is). 0 or -EPERM. */
int mfs_rights_chown(const struct mfs_ids *ids, const struct mfs_attr *attr, uid_t uid, gid_t gid);

/* To read, or with `write` to set or remove, an extended attribute of that name. Writing: -EPERM,
 * -EACCES; reading: -ENODATA where it is not to be seen. */
int mfs_rights_xattr(struct mfs_vfs *vfs, const struct mfs_ids *ids, const struct mfs_attr *attr,
                     const char *name, bool write);

/* Is the value one that the attribute can have there? -EINVAL, -EOPNOTSUPP. Of an ACL's entries the
 * partitions know more. */
int mfs_rights_value(const struct mfs_attr *attr, const char *name, const void *value, size_t len);

#endif
