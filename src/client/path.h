/* Path walks as a kernel makes them (path_resolution(7)), for callers without one. Absolute paths
 * and symbolic links begin at the file system's own root. */
#ifndef MFS_CLIENT_PATH_H
#define MFS_CLIENT_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "vfs/names/acl.h"
#include "vfs/vfs.h"

#define MFS_PATH_LINKS_MAX 40 /* symbolic links that one walk follows, as Linux */

/* Finds what is at the path, seen from the directory `from`; a symbolic link at its end is followed
 * if `follow`, or if slashes are behind it. Blocks. 0, or as open(2): -ENOENT, -ENOTDIR, -EACCES (a
 * directory on the way may not be searched), -ELOOP, -ENAMETOOLONG (a name of more than NAME_MAX
 * bytes, a path of PATH_MAX or more), … */
int mfs_path_lookup(struct mfs_vfs *vfs, const struct mfs_ids *ids, uint64_t from, const char *path,
                    bool follow, struct mfs_attr *attr);

/* Where a path's last name is, or is to be. */
struct mfs_path_last {
    struct mfs_attr dir;     /* the directory of the name, which permits a search */
    char name[NAME_MAX + 1]; /* "": the path is nothing but slashes; may be "." or ".." */
    bool slash;              /* slashes are behind it */
    bool found;              /* with `look`: there is something of that name, … */
    struct mfs_attr attr;    /* … and what */
};

/* Finds it. With `look` the name is looked up, too, and with `follow` besides a symbolic link there
 * is gone along, to where its target is, or would be. Blocks. 0, or as mfs_path_lookup. */
int mfs_path_last(struct mfs_vfs *vfs, const struct mfs_ids *ids, uint64_t from, const char *path,
                  bool look, bool follow, struct mfs_path_last *last);

#endif
