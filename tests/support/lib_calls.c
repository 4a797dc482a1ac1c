#define LIB_CALLS_HERE
/* The header says what for. */
#include "lib_calls.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "lib_check.h"

#define FILES 4096

static struct memefs *connection;
static pid_t owner;
static struct memefs_file *files[FILES];

/* A process that a test kills leaves what a dead client leaves; others end as they should. */
static void end(void)
{
    if (owner == getpid())
        memefs_disconnect(connection);
}

static struct memefs *lib(void)
{
    if (owner == 0)
        atexit(end); /* so it runs after what libraries do at exit */
    if (owner != getpid()) {
        memset(files, 0, sizeof files);
        connection = lib_connect();
        owner = getpid();
    }
    return connection;
}

/* The path within the file system; NULL: it is not below the mount. */
static const char *within(const char *path)
{
    const char *mount = getenv("MEMEFS_TEST_LIB_MOUNT");
    size_t n = mount != NULL ? strlen(mount) : 0;

    if (n == 0 || strncmp(path, mount, n) != 0 || (path[n] != '/' && path[n] != '\0'))
        return NULL;
    return path[n] != '\0' ? path + n : "/";
}

/* Is a call for the library? Then *at and *path are those for it. */
static bool is_lib(int fd, const char **path, struct memefs_file **at)
{
    const char *inside = **path == '/' ? within(*path) : NULL;

    *at = NULL;
    if (inside != NULL) {
        *path = inside;
        return true;
    }
    if (**path == '/' || fd < LIB_CALLS_FIRST)
        return false;
    lib();
    *at = files[fd - LIB_CALLS_FIRST];
    return true;
}

static struct memefs_file *file_of(int fd)
{
    return files[fd - LIB_CALLS_FIRST];
}

static long result(long rc)
{
    if (rc >= 0)
        return rc;
    errno = (int)-rc;
    return -1;
}

static int descriptor(struct memefs_file *f)
{
    int i = 0;

    while (i < FILES && files[i] != NULL)
        i++;
    CHECK(i < FILES);
    files[i] = f;
    return LIB_CALLS_FIRST + i;
}

static int open_at(int at, const char *path, int flags, mode_t mode)
{
    struct memefs_file *dir, *f;
    int rc;

    if (!is_lib(at, &path, &dir))
        return openat(at, path, flags, mode);
    rc = memefs_openat(lib(), dir, path, flags, mode, &f);
    return rc < 0 ? (int)result(rc) : descriptor(f);
}

int lib_open(const char *path, int flags, ...)
{
    va_list ap;
    mode_t mode = 0;

    va_start(ap, flags);
    if (flags & (O_CREAT | O_TMPFILE))
        mode = va_arg(ap, mode_t);
    va_end(ap);
    return open_at(AT_FDCWD, path, flags, mode);
}

int lib_openat(int at, const char *path, int flags, ...)
{
    va_list ap;
    mode_t mode = 0;

    va_start(ap, flags);
    if (flags & (O_CREAT | O_TMPFILE))
        mode = va_arg(ap, mode_t);
    va_end(ap);
    return open_at(at, path, flags, mode);
}

int lib_close(int fd)
{
    struct memefs_file *f;

    if (fd < LIB_CALLS_FIRST)
        return close(fd);
    f = file_of(fd);
    files[fd - LIB_CALLS_FIRST] = NULL;
    return (int)result(memefs_close(f));
}

#define BY_FD(system, library)                                                                     \
    if (fd < LIB_CALLS_FIRST)                                                                      \
        return system;                                                                             \
    return result(library)

ssize_t lib_read(int fd, void *buf, size_t len)
{
    BY_FD(read(fd, buf, len), memefs_read(file_of(fd), buf, len));
}

ssize_t lib_write(int fd, const void *buf, size_t len)
{
    BY_FD(write(fd, buf, len), memefs_write(file_of(fd), buf, len));
}

ssize_t lib_pread(int fd, void *buf, size_t len, off_t off)
{
    BY_FD(pread(fd, buf, len, off), memefs_pread(file_of(fd), buf, len, off));
}

ssize_t lib_pwrite(int fd, const void *buf, size_t len, off_t off)
{
    BY_FD(pwrite(fd, buf, len, off), memefs_pwrite(file_of(fd), buf, len, off));
}

off_t lib_lseek(int fd, off_t off, int whence)
{
    BY_FD(lseek(fd, off, whence), memefs_lseek(file_of(fd), off, whence));
}

#undef BY_FD
#define BY_FD(system, library)                                                                     \
    if (fd < LIB_CALLS_FIRST)                                                                      \
        return system;                                                                             \
    return (int)result(library)

int lib_fsync(int fd)
{
    BY_FD(fsync(fd), memefs_fsync(file_of(fd)));
}

int lib_ftruncate(int fd, off_t size)
{
    BY_FD(ftruncate(fd, size), memefs_ftruncate(file_of(fd), size));
}

int lib_fallocate(int fd, int mode, off_t off, off_t len)
{
    BY_FD(fallocate(fd, mode, off, len), memefs_fallocate(file_of(fd), mode, off, len));
}

int lib_flock(int fd, int operation)
{
    BY_FD(flock(fd, operation), memefs_flock(file_of(fd), operation, -1));
}

int lib_fstat(int fd, struct stat *st)
{
    BY_FD(fstat(fd, st), memefs_fstat(file_of(fd), st));
}

#define BY_PATH(fd, system, library)                                                               \
    struct memefs_file *at_;                                                                       \
    if (!is_lib(fd, &path, &at_))                                                                  \
        return system;                                                                             \
    return (int)result(library)

int lib_truncate(const char *path, off_t size)
{
    BY_PATH(AT_FDCWD, truncate(path, size), memefs_truncate(lib(), path, size));
}

int lib_fstatat(int at, const char *path, struct stat *st, int flags)
{
    BY_PATH(at, fstatat(at, path, st, flags), memefs_fstatat(lib(), at_, path, st, flags));
}

int lib_access(const char *path, int mode)
{
    BY_PATH(AT_FDCWD, access(path, mode), memefs_access(lib(), path, mode));
}

int lib_mkdirat(int at, const char *path, mode_t mode)
{
    BY_PATH(at, mkdirat(at, path, mode), memefs_mkdirat(lib(), at_, path, mode));
}

int lib_mknod(const char *path, mode_t mode, dev_t dev)
{
    BY_PATH(AT_FDCWD, mknod(path, mode, dev), memefs_mknod(lib(), path, mode, dev));
}

int lib_symlinkat(const char *target, int at, const char *path)
{
    BY_PATH(at, symlinkat(target, at, path), memefs_symlinkat(lib(), target, at_, path));
}

int lib_unlinkat(int at, const char *path, int flags)
{
    BY_PATH(at, unlinkat(at, path, flags), memefs_unlinkat(lib(), at_, path, flags));
}

int lib_fchmodat(int at, const char *path, mode_t mode, int flags)
{
    BY_PATH(at, fchmodat(at, path, mode, flags), memefs_fchmodat(lib(), at_, path, mode, flags));
}

int lib_utimensat(int at, const char *path, const struct timespec times[2], int flags)
{
    BY_PATH(at, utimensat(at, path, times, flags),
            memefs_utimensat(lib(), at_, path, times, flags));
}

/* Between a mount and the library there is nothing: they are two file systems. */
static int across(void)
{
    errno = EXDEV;
    return -1;
}

int lib_linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
    struct memefs_file *f, *t;
    bool a = is_lib(from_at, &from, &f), b = is_lib(to_at, &to, &t);

    if (a != b)
        return across();
    return a ? (int)result(memefs_linkat(lib(), f, from, t, to, flags))
             : linkat(from_at, from, to_at, to, flags);
}

int lib_renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    struct memefs_file *f, *t;
    bool a = is_lib(from_at, &from, &f), b = is_lib(to_at, &to, &t);

    if (a != b)
        return across();
    return a ? (int)result(memefs_renameat(lib(), f, from, t, to, flags))
             : renameat2(from_at, from, to_at, to, flags);
}

/* --- directories ------------------------------------------------------------------------------ */

struct lib_dir {
    DIR *system;
    struct memefs_dir *library;
    struct dirent entry;
    long cookie; /* of the next entry */
};

struct lib_dir *lib_opendir(const char *path)
{
    struct lib_dir *d = calloc(1, sizeof *d);
    struct memefs_file *at;

    CHECK(d != NULL);
    if (!is_lib(AT_FDCWD, &path, &at))
        d->system = opendir(path);
    else
        result(memefs_opendir(lib(), path, MEMEFS_DIR_STAT, &d->library));
    if (d->system != NULL || d->library != NULL)
        return d;
    free(d);
    return NULL;
}

struct dirent *lib_readdir(struct lib_dir *d)
{
    const struct memefs_dirent *e;
    int rc;

    if (d->system != NULL)
        return readdir(d->system);
    rc = memefs_readdir(d->library, &e);
    if (rc <= 0) {
        result(rc);
        return NULL;
    }
    d->cookie = (long)e->cookie;
    d->entry = (struct dirent){.d_ino = e->ino, .d_type = IFTODT(e->type)};
    snprintf(d->entry.d_name, sizeof d->entry.d_name, "%s", e->name);
    return &d->entry;
}

void lib_rewinddir(struct lib_dir *d)
{
    if (d->system != NULL)
        rewinddir(d->system);
    else
        memefs_seekdir(d->library, d->cookie = 0);
}

long lib_telldir(struct lib_dir *d)
{
    return d->system != NULL ? telldir(d->system) : d->cookie;
}

void lib_seekdir(struct lib_dir *d, long cookie)
{
    if (d->system != NULL)
        seekdir(d->system, cookie);
    else
        memefs_seekdir(d->library, d->cookie = cookie);
}

int lib_closedir(struct lib_dir *d)
{
    int rc = d->system != NULL ? closedir(d->system) : (int)result(memefs_closedir(d->library));

    free(d);
    return rc;
}
