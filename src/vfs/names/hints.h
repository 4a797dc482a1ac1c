/* Hints of directories, and what they mean for a file that is made in one (decisions/0038). */
#ifndef MFS_VFS_NAMES_HINTS_H
#define MFS_VFS_NAMES_HINTS_H

#include "meta/hints.h"
#include "vfs/vfs.h"

/* As setxattr(2), of an attribute whose name is kept for hints. What is refused is told in the log,
 * with what is right: -EINVAL a value or name that is no hint, -EOPNOTSUPP one for a file that is
 * there already. */
int mfs_hints_set(struct mfs_vfs *vfs, uint64_t ino, const char *name, const void *value,
                  size_t len, int flags);

/* As getxattr(2) and removexattr(2). */
ssize_t mfs_hints_get(struct mfs_vfs *vfs, uint64_t ino, const struct mfs_hint_kind *hint,
                      void *buf, size_t cap);
int mfs_hints_remove(struct mfs_vfs *vfs, uint64_t ino, const struct mfs_hint_kind *hint);

/* Where the file is to be by new->hints, under that name (NULL: none): sets new->home and
 * MFS_HINT_TOGETHER, or neither, if the node it is to be at has no partition. Does not block. */
void mfs_hints_place(struct mfs_vfs *vfs, uint64_t parent, const char *name, struct mfs_new *new);

#endif
