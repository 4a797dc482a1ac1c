/* From the paths of calls to inodes and names (client/path.h). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/placement.h"
#include "lib/lib.h"

int mfs_lib_from(struct memefs *fs, struct memefs_file *at, uint64_t *from)
{
    *from = MFS_ROOT_INO;
    if (at == NULL)
        return 0;
    if (at->fs != fs)
        return -EINVAL;
    *from = at->attr.ino;
    return S_ISDIR(at->attr.mode) ? 0 : -ENOTDIR;
}

static bool is_itself(const char *path)
{
    return path[0] == '.' && path[1 + strspn(path + 1, "/")] == '\0';
}

/* The directory may be gone, and be there for those that have it open. */
static int look_at(struct memefs *fs, struct memefs_file *at, struct mfs_attr *attr)
{
    int rc = mfs_lib_attr(at, attr);

    return rc == 0 ? mfs_vfs_access(fs->vfs, attr, &fs->ids, X_OK) : rc;
}

int mfs_lib_look(struct memefs *fs, struct memefs_file *at, const char *path, int at_flags,
                 struct mfs_attr *attr)
{
    uint64_t from;
    int rc;

    if (path == NULL)
        return -EINVAL;
    if (*path == '\0' && (at_flags & AT_EMPTY_PATH)) {
        if (at == NULL)
            return mfs_vfs_getattr(fs->vfs, MFS_ROOT_INO, attr);
        return at->fs == fs ? mfs_lib_attr(at, attr) : -EINVAL;
    }
    rc = *path == '/' ? 0 : mfs_lib_from(fs, at, &from);
    if (rc < 0)
        return rc;
    if (at != NULL && is_itself(path))
        return look_at(fs, at, attr);
    if (*path == '/')
        from = MFS_ROOT_INO;
    return mfs_path_lookup(fs->vfs, &fs->ids, from, path, !(at_flags & AT_SYMLINK_NOFOLLOW), attr);
}

int mfs_lib_last(struct memefs *fs, struct memefs_file *at, const char *path,
                 struct mfs_path_last *last)
{
    uint64_t from = MFS_ROOT_INO;
    int rc = 0;

    if (path == NULL)
        return -EINVAL;
    if (*path != '/')
        rc = mfs_lib_from(fs, at, &from);
    return rc < 0 ? rc : mfs_path_last(fs->vfs, &fs->ids, from, path, false, false, last);
}

bool mfs_lib_is_dots(const struct mfs_path_last *last)
{
    return last->name[0] == '\0' || strcmp(last->name, ".") == 0 || strcmp(last->name, "..") == 0;
}
