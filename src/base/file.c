/* Whole files. A state file must never be seen half-written, whatever dies when: hence the write
 * beside it, the two fsyncs and the rename. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

#define READ_CHUNK  4096
#define WRITER_TIME 10000 /* ms that a process at a pipe's other end has to write something */
#define TREE_DEPTH  32

static int await_writer(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;

    do
        n = poll(&p, 1, WRITER_TIME);
    while (n < 0 && errno == EINTR);
    return n > 0 ? 0 : n ? -errno : -ETIMEDOUT;
}

int mfs_file_read_fd(int fd, size_t max, struct mfs_buf *out)
{
    size_t total = 0;
    int rc = 0;

    for (;;) {
        char *to = mfs_buf_reserve(out, READ_CHUNK);
        ssize_t n = to ? read(fd, to, READ_CHUNK) : -1;

        if (n < 0 && to && (errno == EINTR || (errno == EAGAIN && !(rc = await_writer(fd)))))
            continue;
        if (rc)
            break;
        if (n < 0)
            rc = to ? -errno : -ENOMEM;
        if (n <= 0)
            break;
        total += (size_t)n;
        if (total > max) {
            rc = -EFBIG;
            break;
        }
        mfs_buf_commit(out, (size_t)n);
    }
    return rc;
}

/* Opening a pipe that has no writer, and reading it, would wait for ever. */
static int read_path(const char *path, bool pipes, size_t max, struct mfs_buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0;
    struct stat st;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st))
        rc = -errno;
    else if (S_ISFIFO(st.st_mode))
        rc = pipes ? await_writer(fd) : -ENOTSUP;
    rc = rc ? rc : mfs_file_read_fd(fd, max, out);
    close(fd);
    return rc;
}

int mfs_file_read(const char *path, size_t max, struct mfs_buf *out)
{
    return read_path(path, false, max, out);
}

int mfs_file_read_given(const char *path, size_t max, struct mfs_buf *out)
{
    return read_path(path, true, max, out);
}

int mfs_file_write_all(int fd, const void *p, size_t n)
{
    const char *at = p;

    while (n) {
        ssize_t w = write(fd, at, n);

        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return -errno;
        at += w;
        n -= (size_t)w;
    }
    return 0;
}

int mfs_file_sync_dir(int dir)
{
    return fsync(dir) && errno != EINVAL ? -errno : 0;
}

static int sync_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    char dir[PATH_MAX];
    int fd, rc;

    if (!slash)
        rc = mfs_text_copy(dir, sizeof dir, ".");
    else
        rc = mfs_text_format(dir, sizeof dir, "%.*s", (int)(slash - path) + (slash == path), path);
    if (rc)
        return rc;
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    rc = mfs_file_sync_dir(fd);
    close(fd);
    return rc;
}

/* `path` in `dir`, which is AT_FDCWD or its directory. */
static int replace(int dir, const char *path, const void *p, size_t n, mode_t mode, bool sync)
{
    char tmp[PATH_MAX];
    int fd, rc;

    /* Another process may be writing the same file: each its own, the last rename wins. */
    rc = mfs_text_format(tmp, sizeof tmp, "%s.new.%d", path, (int)getpid());
    if (rc)
        return rc;
    unlinkat(dir, tmp, 0); /* of one that died and had our pid; O_EXCL: the mode is ours */
    fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;
    rc = mfs_file_write_all(fd, p, n);
    if (!rc && (fchmod(fd, mode) || (sync && fsync(fd))))
        rc = -errno;
    if (close(fd) && !rc)
        rc = -errno;
    if (!rc && renameat(dir, tmp, dir, path))
        rc = -errno;
    if (rc) {
        unlinkat(dir, tmp, 0);
        return rc;
    }
    if (!sync)
        return 0;
    return dir == AT_FDCWD ? sync_parent(path) : mfs_file_sync_dir(dir);
}

int mfs_file_write(const char *path, const void *p, size_t n, mode_t mode)
{
    return replace(AT_FDCWD, path, p, n, mode, true);
}

int mfs_file_write_at(int dir, const char *name, const void *p, size_t n, mode_t mode)
{
    return replace(dir, name, p, n, mode, true);
}

int mfs_file_note(const char *path, const void *p, size_t n, mode_t mode)
{
    return replace(AT_FDCWD, path, p, n, mode, false);
}

int mfs_file_mkdirs(const char *path, mode_t mode)
{
    char part[PATH_MAX];
    struct stat st;
    int rc = mfs_text_copy(part, sizeof part, path);

    if (rc)
        return rc;
    for (char *at = part + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (mkdir(part, mode) && errno != EEXIST)
            return -errno;
        *at = '/';
    }
    if (!mkdir(part, mode))
        return 0;
    if (errno != EEXIST)
        return -errno;
    if (stat(part, &st))
        return -errno;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int mfs_file_absolute(const char *path, char *out, size_t n)
{
    char cwd[PATH_MAX];
    size_t len;
    int rc;

    if (path[0] == '/')
        rc = mfs_text_copy(out, n, path);
    else if (getcwd(cwd, sizeof cwd) == NULL)
        rc = -errno;
    else
        rc = mfs_text_format(out, n, "%s/%s", cwd, path);
    for (len = rc == 0 ? strlen(out) : 0; len > 1 && out[len - 1] == '/'; len--)
        out[len - 1] = '\0';
    return rc;
}

static int remove_at(int dirfd, const char *name, dev_t dev, unsigned depth);

static int remove_children(int dirfd, const char *name, unsigned depth)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rc = 0;
    struct dirent *e;
    struct stat st;
    DIR *dir;

    if (fd < 0)
        return -errno;
    dir = fdopendir(fd);
    if (!dir || fstat(fd, &st)) {
        rc = -errno;
        if (dir)
            closedir(dir);
        else
            close(fd);
        return rc;
    }
    while ((e = readdir(dir))) {
        int one = 0;

        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            one = remove_at(fd, e->d_name, st.st_dev, depth + 1);
        if (!rc)
            rc = one;
    }
    closedir(dir);
    return rc;
}

static int remove_at(int dirfd, const char *name, dev_t dev, unsigned depth)
{
    struct stat st;
    int rc;

    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISDIR(st.st_mode))
        return unlinkat(dirfd, name, 0) && errno != ENOENT ? -errno : 0;
    if (depth && st.st_dev != dev)
        return -EBUSY;
    if (depth > TREE_DEPTH)
        return -ELOOP;
    rc = remove_children(dirfd, name, depth);
    if (unlinkat(dirfd, name, AT_REMOVEDIR) && errno != ENOENT && !rc)
        rc = -errno;
    return rc;
}

int mfs_file_remove_tree_at(int dir, const char *name)
{
    return remove_at(dir, name, 0, 0);
}

int mfs_file_remove_tree(const char *path)
{
    return mfs_file_remove_tree_at(AT_FDCWD, path);
}

int mfs_random(void *p, size_t n)
{
    char *at = p;

    while (n) {
        ssize_t got = getrandom(at, n, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

int mfs_random_hex(char *out, size_t n)
{
    unsigned char raw[64];
    int rc = n <= sizeof raw ? mfs_random(raw, n) : -EINVAL;

    if (rc)
        return rc;
    mfs_text_hex(raw, n, out);
    return 0;
}
