/* The walk along a path, and what is opened below. */
#include "base/trusted_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

#define LINKS_MOST 40 /* as the kernel's own bound */
#define OTHERS     (S_IWGRP | S_IWOTH)

struct walk {
    unsigned flags;
    int fd;              /* of the directory reached, O_PATH */
    char path[PATH_MAX]; /* to it, without links; "" for the root */
    char rest[PATH_MAX]; /* still to go */
    unsigned links;
    struct mfs_err *err;
};

static bool is_trusted(const struct stat *st)
{
    return !st->st_uid || st->st_uid == geteuid();
}

static const char *shown(const struct walk *w)
{
    return w->path[0] ? w->path : "/";
}

static int check_owner(const struct walk *w, const struct stat *st, const char *what,
                       const char *path)
{
    if (is_trusted(st))
        return 0;
    return mfs_err_set(w->err, -EPERM,
                       "%s %s belongs to user %u, who decides what is there; choose a directory "
                       "where only user %u and root may change anything, or act as that user",
                       what, path, st->st_uid, geteuid());
}

static int check_dir(const struct walk *w, bool sticky_will_do)
{
    struct stat st;
    int rc;

    if (fstat(w->fd, &st))
        return mfs_err_set(w->err, -errno, "%s: %s", shown(w), strerror(errno));
    rc = check_owner(w, &st, "directory", shown(w));
    if (rc || !(st.st_mode & OTHERS) || (sticky_will_do && st.st_mode & S_ISVTX))
        return rc;
    return mfs_err_set(w->err, -EPERM,
                       "others may write to directory %s (mode %04o); chmod go-w it, or choose "
                       "another directory",
                       shown(w), st.st_mode & 07777);
}

static void step_to(struct walk *w, int fd)
{
    close(w->fd);
    w->fd = fd;
}

static int to_root(struct walk *w)
{
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return mfs_err_set(w->err, -errno, "/: %s", strerror(errno));
    step_to(w, fd);
    w->path[0] = '\0';
    return check_dir(w, true);
}

static int too_long(const struct walk *w)
{
    return mfs_err_set(w->err, -ENAMETOOLONG, "%s: %s", shown(w), strerror(ENAMETOOLONG));
}

/* Takes the next name off the rest. False: there is none. */
static bool take_name(struct walk *w, char name[NAME_MAX + 1], int *rc)
{
    const char *at = w->rest + strspn(w->rest, "/");
    size_t len = strcspn(at, "/");

    *rc = 0;
    if (!len)
        return false;
    if (len > NAME_MAX) {
        *rc = too_long(w);
        return false;
    }
    memcpy(name, at, len);
    name[len] = '\0';
    memmove(w->rest, at + len, strlen(at + len) + 1);
    return true;
}

/* A link with a second name may have been put there by any user who can make hard links. */
static int follow(struct walk *w, const char *name, int link)
{
    char path[PATH_MAX], target[PATH_MAX], rest[PATH_MAX];
    struct stat st;
    ssize_t n;
    int rc;

    if (mfs_text_format(path, sizeof path, "%s/%s", w->path, name))
        return too_long(w);
    if (fstat(link, &st))
        return mfs_err_set(w->err, -errno, "%s: %s", path, strerror(errno));
    if (!S_ISLNK(st.st_mode) || ++w->links > LINKS_MOST)
        return mfs_err_set(w->err, S_ISLNK(st.st_mode) ? -ELOOP : -ENOTDIR, "%s: %s", path,
                           strerror(S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR));
    rc = check_owner(w, &st, "symbolic link", path);
    if (!rc && st.st_nlink > 1)
        rc = mfs_err_set(w->err, -EPERM,
                         "symbolic link %s has other names, so anybody may have put it there; "
                         "remove it",
                         path);
    if (rc)
        return rc;
    n = readlinkat(link, "", target, sizeof target - 1);
    if (n < 0)
        return mfs_err_set(w->err, -errno, "%s: %s", path, strerror(errno));
    target[n] = '\0';
    if (mfs_text_format(rest, sizeof rest, "%s/%s", target, w->rest))
        return too_long(w);
    memcpy(w->rest, rest, sizeof rest);
    return target[0] == '/' ? to_root(w) : 0;
}

/* With what it names: O_DIRECTORY has file systems that mount themselves appear. */
static int open_name(const struct walk *w, const char *name)
{
    int fd = openat(w->fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 || errno != ENOENT || !(w->flags & MFS_TRUSTED_MAKE))
        return fd;
    if (mkdirat(w->fd, name, w->rest[strspn(w->rest, "/")] ? 0755 : 0700) && errno != EEXIST)
        return -1;
    return openat(w->fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int note_missing(struct walk *w, const char *name, char *real)
{
    char path[PATH_MAX];
    const char *rest = w->rest + strspn(w->rest, "/");

    if (mfs_text_format(path, sizeof path, "%s/%s%s%s", w->path, name, *rest ? "/" : "", rest))
        return too_long(w);
    if (real)
        memcpy(real, path, sizeof path);
    return mfs_err_set(w->err, -ENOENT, "%s: %s", path, strerror(ENOENT));
}

static int enter(struct walk *w, const char *name, int fd)
{
    char *slash = strrchr(w->path, '/');
    size_t len = strlen(w->path);

    step_to(w, fd);
    if (!strcmp(name, ".."))
        w->path[slash ? slash - w->path : 0] = '\0';
    else if (mfs_text_format(w->path + len, sizeof w->path - len, "/%s", name))
        return too_long(w);
    return check_dir(w, true);
}

static int step(struct walk *w, const char *name, char *real)
{
    int fd, rc;

    if (!strcmp(name, "."))
        return 0;
    fd = open_name(w, name);
    if (fd >= 0)
        return enter(w, name, fd);
    if (errno == ENOENT)
        return note_missing(w, name, real);
    if (errno != ENOTDIR && errno != ELOOP)
        return mfs_err_set(w->err, -errno, "%s/%s: %s", w->path, name, strerror(errno));
    fd = openat(w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return mfs_err_set(w->err, -errno, "%s/%s: %s", w->path, name, strerror(errno));
    rc = follow(w, name, fd);
    close(fd);
    return rc;
}

static int walk(struct walk *w, char *real)
{
    char name[NAME_MAX + 1];
    int rc = to_root(w), named;

    while (!rc && take_name(w, name, &named))
        rc = step(w, name, real);
    if (!rc)
        rc = named;
    if (!rc)
        rc = check_dir(w, w->flags & MFS_TRUSTED_SHARED);
    return rc;
}

static int begin(struct walk *w, const char *path)
{
    char cwd[PATH_MAX] = "";

    if (!path[0]) /* as the kernel has it: it is not the current directory */
        return mfs_err_set(w->err, -ENOENT, "\"\" names no directory");
    if (path[0] != '/' && !getcwd(cwd, sizeof cwd))
        return mfs_err_set(w->err, -errno, "%s: %s", path, strerror(errno));
    return mfs_text_format(w->rest, sizeof w->rest, "%s/%s", cwd, path) ? too_long(w) : 0;
}

int mfs_trusted_dir_open(const char *path, unsigned flags, char *real, struct mfs_err *err)
{
    struct walk w = {.flags = flags, .fd = -1, .err = err};
    int rc = begin(&w, path), fd = -1;

    if (!rc)
        rc = walk(&w, real);
    if (!rc && real)
        memcpy(real, shown(&w), strlen(shown(&w)) + 1);
    if (!rc && (fd = openat(w.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        rc = mfs_err_set(err, -errno, "%s: %s", shown(&w), strerror(errno));
    if (w.fd >= 0)
        close(w.fd);
    return rc ? rc : fd;
}

int mfs_trusted_dir_make(const char *path, struct mfs_err *err)
{
    int fd = mfs_trusted_dir_open(path, MFS_TRUSTED_MAKE, NULL, err);

    if (fd < 0)
        return fd;
    close(fd);
    return 0;
}

/* ---- below ----------------------------------------------------------------------------------- */

int mfs_trusted_open(int dir, const char *path, int flags, mode_t mode)
{
    struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC | O_NOCTTY),
                           .mode = flags & O_CREAT ? mode : 0,
                           .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    long fd;

    if (dir != AT_FDCWD)
        how.resolve |= RESOLVE_BENEATH;
    fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
    return fd < 0 ? -errno : (int)fd;
}

int mfs_trusted_open_file(int dir, const char *path)
{
    /* Without waiting, as a fifo would have it, until it is known to be a file. */
    int fd = mfs_trusted_open(dir, path, O_RDONLY | O_NONBLOCK, 0), rc = 0;
    struct stat st;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st))
        rc = -errno;
    else if (!S_ISREG(st.st_mode) || !is_trusted(&st) || st.st_mode & OTHERS)
        rc = -EPERM;
    if (!rc)
        return fd;
    close(fd);
    return rc;
}

int mfs_trusted_read(const char *path, size_t max, struct mfs_buf *out)
{
    int fd = mfs_trusted_open_file(AT_FDCWD, path), rc;

    if (fd < 0)
        return fd;
    rc = mfs_file_read_fd(fd, max, out);
    close(fd);
    return rc;
}

static int check_private(int fd)
{
    struct stat st;

    if (fstat(fd, &st))
        return -errno;
    return st.st_uid == geteuid() && !(st.st_mode & 077) ? 0 : -EPERM;
}

static int open_private(int dir, const char *name)
{
    int fd = mfs_trusted_open(dir, name, O_RDONLY | O_DIRECTORY, 0), rc;

    if (fd < 0)
        return fd;
    rc = check_private(fd);
    if (!rc)
        return fd;
    close(fd);
    return rc;
}

int mfs_trusted_dir_private(int dir, const char *name)
{
    if (mkdirat(dir, name, 0700) && errno != EEXIST)
        return -errno;
    return open_private(dir, name);
}

int mfs_trusted_dir_remove(const char *path)
{
    const char *slash = strrchr(path, '/');
    char above[PATH_MAX];
    int rc = path[0] == '/' && slash[1]
                 ? mfs_text_format(above, sizeof above, "%.*s", (int)(slash - path), path)
                 : -EINVAL;
    int dir, fd;

    if (rc)
        return rc;
    dir = open_private(AT_FDCWD, above[0] ? above : "/");
    if (dir < 0)
        return dir == -ENOENT ? 0 : dir;
    fd = open_private(dir, slash + 1);
    rc = fd == -ENOENT ? 0 : fd < 0 ? fd : mfs_file_remove_tree_at(dir, slash + 1);
    if (fd >= 0)
        close(fd);
    close(dir);
    return rc;
}
