/* The calls without "at": paths begin at the root. And what is made of several others. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/lib.h"

int memefs_open(struct memefs *fs, const char *path, int flags, mode_t mode,
                struct memefs_file **file)
{
    return memefs_openat(fs, NULL, path, flags, mode, file);
}

int memefs_stat(struct memefs *fs, const char *path, struct stat *st)
{
    return memefs_fstatat(fs, NULL, path, st, 0);
}

int memefs_lstat(struct memefs *fs, const char *path, struct stat *st)
{
    return memefs_fstatat(fs, NULL, path, st, AT_SYMLINK_NOFOLLOW);
}

int memefs_access(struct memefs *fs, const char *path, int mode)
{
    return memefs_faccessat(fs, NULL, path, mode, 0);
}

int memefs_chmod(struct memefs *fs, const char *path, mode_t mode)
{
    return memefs_fchmodat(fs, NULL, path, mode, 0);
}

int memefs_chown(struct memefs *fs, const char *path, uid_t uid, gid_t gid)
{
    return memefs_fchownat(fs, NULL, path, uid, gid, 0);
}

int memefs_lchown(struct memefs *fs, const char *path, uid_t uid, gid_t gid)
{
    return memefs_fchownat(fs, NULL, path, uid, gid, AT_SYMLINK_NOFOLLOW);
}

int memefs_utimens(struct memefs *fs, const char *path, const struct timespec times[2])
{
    return memefs_utimensat(fs, NULL, path, times, 0);
}

int memefs_mkdir(struct memefs *fs, const char *path, mode_t mode)
{
    return memefs_mkdirat(fs, NULL, path, mode);
}

int memefs_mknod(struct memefs *fs, const char *path, mode_t mode, dev_t dev)
{
    return memefs_mknodat(fs, NULL, path, mode, dev);
}

int memefs_symlink(struct memefs *fs, const char *target, const char *path)
{
    return memefs_symlinkat(fs, target, NULL, path);
}

int memefs_link(struct memefs *fs, const char *from, const char *to)
{
    return memefs_linkat(fs, NULL, from, NULL, to, 0);
}

int memefs_unlink(struct memefs *fs, const char *path)
{
    return memefs_unlinkat(fs, NULL, path, 0);
}

int memefs_rmdir(struct memefs *fs, const char *path)
{
    return memefs_unlinkat(fs, NULL, path, AT_REMOVEDIR);
}

int memefs_rename(struct memefs *fs, const char *from, const char *to, unsigned flags)
{
    return memefs_renameat(fs, NULL, from, NULL, to, flags);
}

ssize_t memefs_readlink(struct memefs *fs, const char *path, char *buf, size_t size)
{
    return memefs_readlinkat(fs, NULL, path, buf, size);
}

ssize_t memefs_getxattr(struct memefs *fs, const char *path, const char *name, void *value,
                        size_t size)
{
    return memefs_getxattrat(fs, NULL, path, name, value, size, 0);
}

int memefs_setxattr(struct memefs *fs, const char *path, const char *name, const void *value,
                    size_t size, int flags)
{
    return memefs_setxattrat(fs, NULL, path, name, value, size, flags, 0);
}

ssize_t memefs_listxattr(struct memefs *fs, const char *path, char *names, size_t size)
{
    return memefs_listxattrat(fs, NULL, path, names, size, 0);
}

int memefs_removexattr(struct memefs *fs, const char *path, const char *name)
{
    return memefs_removexattrat(fs, NULL, path, name, 0);
}

int memefs_opendir(struct memefs *fs, const char *path, unsigned flags, struct memefs_dir **dir)
{
    return memefs_opendirat(fs, NULL, path, flags, 0, dir);
}
