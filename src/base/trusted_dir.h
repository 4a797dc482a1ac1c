/* Directories that a program acts in with all its rights, because of what it finds there or for
 * what it writes: the state of a deployment, dumps, checkpoints. One rule for all of them: what is
 * in them, and which directory a path leads to, is decided by this program's user and by root
 * alone. So each directory of the path, and each symbolic link in it, belongs to one of the two,
 * and no directory may be written by others, except those above the last one that are sticky
 * (/tmp), where others can't touch what is ours. Access control lists count, as the bits of the
 * group hold their mask.
 *
 * A path is walked once, descriptor by descriptor, so nothing changes between look and use. What is
 * below is opened by mfs_trusted_open() and follows no links at all. All functions block. */
#ifndef MFS_BASE_TRUSTED_DIR_H
#define MFS_BASE_TRUSTED_DIR_H

#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

enum mfs_trusted_flags {
    MFS_TRUSTED_MAKE = 1,  /* what is not there, as mkdir -p: 0755, the last one 0700 */
    MFS_TRUSTED_SHARED = 2 /* the last one may be sticky as well: others work in it, too */
};

/* Opens the directory. `real` (PATH_MAX bytes, may be NULL) gets the absolute path without links;
 * also with -ENOENT, when what is not there is taken for plain directories. A descriptor to close;
 * -ENOENT; -EPERM when the rule is broken; or another negative errno: with a sentence that names
 * what is wrong, and what to do. */
int mfs_trusted_dir_open(const char *path, unsigned flags, char *real, struct mfs_err *err);

/* Makes it and looks at it. 0, or a negative errno as above. */
int mfs_trusted_dir_make(const char *path, struct mfs_err *err);

/* Opens a directory `name` in `dir`, which must be ours, 0700, and is made if it is not there; no
 * link is followed. A descriptor, -EPERM when it is another user's or others may get at it, or
 * another negative errno. */
int mfs_trusted_dir_private(int dir, const char *name);

/* Opens `path`, relative, below the directory; no link is followed, and nothing outside is reached.
 * As openat(2), but a descriptor or a negative errno (-ELOOP: a link). With AT_FDCWD, an absolute
 * path. */
int mfs_trusted_open(int dir, const char *path, int flags, mode_t mode);

/* The same for a file that is there, for reading: regular, ours or root's, and no others may write
 * it; else -EPERM. */
int mfs_trusted_open_file(int dir, const char *path);
/* What -EPERM means then, for messages. */
#define MFS_TRUSTED_NO_FILE "not a file that only this user and root may write to"

/* Appends such a file's content to *out, as mfs_file_read does. */
int mfs_trusted_read(const char *path, size_t max, struct mfs_buf *out);

/* Removes a private directory of ours (as of mfs_trusted_dir_private) and all that is in it. `path`
 * is absolute; links in it are not followed, and the directory above must be private, too. What is
 * not there counts as removed. 0 or a negative errno (-EPERM, -ELOOP: it is not ours alone). */
int mfs_trusted_dir_remove(const char *path);

#endif
