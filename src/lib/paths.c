/* Calls about paths themselves: what a symbolic link says, a path without any, and directories with
 * their parents. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/lib.h"
#include "lib/tree.h"

static ssize_t read_link(struct memefs *fs, struct memefs_file *at, const char *path, char *buf,
                         size_t size)
{
    char target[MFS_SYMLINK_MAX + 1];
    struct mfs_attr attr = {0};
    int n = mfs_lib_enter(fs);

    if (n == 0 && (buf == NULL || size == 0))
        n = -EINVAL;
    if (n == 0)
        n = mfs_lib_look(fs, at, path, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, &attr);
    if (n == 0 && !S_ISLNK(attr.mode))
        n = -EINVAL;
    if (n == 0)
        n = mfs_vfs_readlink(fs->vfs, attr.ino, target, sizeof target);
    if (n > 0)
        memcpy(buf, target, (size_t)n < size ? (size_t)n : size);
    return n;
}

ssize_t memefs_readlinkat(struct memefs *fs, struct memefs_file *at, const char *path, char *buf,
                          size_t size)
{
    unsigned tries = 0;
    ssize_t n;

    do {
        n = read_link(fs, at, path, buf, size);
    } while (mfs_lib_again(n, &tries));
    return (ssize_t)mfs_lib_end(n, "readlink", path);
}

/* --- directories with their parents ----------------------------------------------------------- */

static int make_or_find(struct memefs *fs, const char *path, mode_t mode)
{
    int rc = mfs_lib_mkdir(fs, NULL, path, mode);
    struct mfs_attr attr = {0};
    unsigned tries = 0;

    if (rc != -EEXIST)
        return rc;
    do {
        rc = mfs_lib_look(fs, NULL, path, 0, &attr);
    } while (mfs_lib_again(rc, &tries));
    return rc < 0 || S_ISDIR(attr.mode) ? rc : -ENOTDIR;
}

/* Where the last name of what is left begins, slashes before it included; 0: there is no parent. */
static size_t parent_end(const char *path, size_t len)
{
    while (len > 0 && path[len - 1] == '/')
        len--;
    while (len > 0 && path[len - 1] != '/')
        len--;
    while (len > 0 && path[len - 1] == '/')
        len--;
    return len;
}

static size_t next_end(const char *path, size_t len)
{
    len += strspn(path + len, "/");
    return len + strcspn(path + len, "/");
}

/* Upwards to what is there, as a rule not far, and down again. `path` is changed meanwhile. Those
 * between can be used by their maker, as those of mkdir -p. */
static int make_all(struct memefs *fs, char *path, mode_t mode)
{
    size_t whole = strlen(path), len = whole;
    int rc = make_or_find(fs, path, mode);

    while (rc == -ENOENT && (len = parent_end(path, len)) > 0) {
        char was = path[len];

        path[len] = '\0';
        rc = make_or_find(fs, path, mode | 0300);
        path[len] = was;
    }
    while (rc == 0 && len < whole) {
        char was = path[len = next_end(path, len)];

        path[len] = '\0';
        rc = make_or_find(fs, path, len < whole ? mode | 0300 : mode);
        path[len] = was;
    }
    return rc;
}

int mfs_lib_makedirs(struct memefs *fs, const char *path, mode_t mode)
{
    size_t len = path != NULL ? strlen(path) : 0;
    char *copy;
    int rc;

    if (path == NULL)
        return -EINVAL;
    while (len > 1 && path[len - 1] == '/')
        len--;
    copy = strndup(path, len);
    if (copy == NULL)
        return -ENOMEM;
    rc = make_all(fs, copy, mode);
    free(copy);
    return rc;
}

int memefs_makedirs(struct memefs *fs, const char *path, mode_t mode)
{
    int rc = mfs_lib_enter(fs);

    if (rc == 0)
        rc = mfs_lib_makedirs(fs, path, mode);
    return (int)mfs_lib_end(rc, "makedirs", path);
}
