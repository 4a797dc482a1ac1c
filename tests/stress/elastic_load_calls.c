/* Calls, timed, counted and checked. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "elastic_load.h"

/* --- what is counted ------------------------------------------------------------------------ */

const char *const load_kind_name[KINDS] = {"open",   "close",  "write", "read",  "fsync",
                                           "rename", "unlink", "mkdir", "rmdir", "list",
                                           "stat",   "lock",   "append"};

int64_t load_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void raise_to(_Atomic int64_t *to, int64_t ns)
{
    int64_t old = atomic_load(to);

    while (ns > old && !atomic_compare_exchange_weak(to, &old, ns))
        ;
}

void load_took(enum kind kind, int64_t since)
{
    int64_t ns = load_now_ns() - since;

    atomic_fetch_add(&load.calls, 1);
    raise_to(&load.longest[kind], ns);
    raise_to(&load.longest_now[kind], ns);
}

__attribute__((format(printf, 1, 2))) bool load_wrong(const char *fmt, ...)
{
    char line[1024], when[32];
    time_t t = time(NULL);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    strftime(when, sizeof when, "%H:%M:%S", localtime(&t));
    fprintf(stderr, "%s WRONG: %s\n", when, line);
    atomic_store(&load.failed, true);
    atomic_store(&load.stop, true);
    return false;
}

/* --- calls, timed and checked: false (0, −1) upon an error, which has been told ------------- */

bool load_check(enum kind kind, int64_t since, int rc, const char *path)
{
    int e = errno;

    load_took(kind, since);
    return rc >= 0 || load_wrong("%s %s: %s", load_kind_name[kind], path, strerror(e));
}

int load_open(const char *path, int flags)
{
    int64_t t = load_now_ns();
    int fd = open(path, flags, 0644);

    load_check(OPEN, t, fd, path);
    return fd;
}

bool load_close(int fd, const char *path)
{
    int64_t t = load_now_ns();

    return load_check(CLOSE, t, close(fd), path);
}

bool load_write(int fd, const void *p, size_t n, uint64_t off, const char *path)
{
    int64_t t = load_now_ns();
    ssize_t got = pwrite(fd, p, n, (off_t)off);

    if (!load_check(WRITE, t, got < 0 ? -1 : 0, path))
        return false;
    atomic_fetch_add(&load.written, n);
    return (size_t)got == n ||
           load_wrong("write %s: %zd of %zu bytes at %llu", path, got, n, (unsigned long long)off);
}

ssize_t load_read(int fd, void *p, size_t n, uint64_t off, const char *path)
{
    int64_t t = load_now_ns();
    ssize_t got = pread(fd, p, n, (off_t)off);

    if (!load_check(READ, t, got < 0 ? -1 : 0, path))
        return -1;
    atomic_fetch_add(&load.fetched, (uint64_t)got);
    return got;
}

bool load_fsync(int fd, const char *path)
{
    int64_t t = load_now_ns();

    return load_check(FSYNC, t, fsync(fd), path);
}

bool load_unlink(const char *path)
{
    int64_t t = load_now_ns();

    return load_check(UNLINK, t, unlink(path), path);
}

bool load_rename(const char *from, const char *to)
{
    int64_t t = load_now_ns();

    return load_check(RENAME, t, rename(from, to), from);
}

bool load_mkdir(const char *path)
{
    int64_t t = load_now_ns();

    return load_check(MKDIR, t, mkdir(path, 0755), path);
}

bool load_rmdir(const char *path)
{
    int64_t t = load_now_ns();

    return load_check(RMDIR, t, rmdir(path), path);
}

bool load_lock(int fd, int type, const char *path)
{
    struct flock lock = {.l_type = (short)type, .l_whence = SEEK_SET, .l_len = 8};
    int64_t t = load_now_ns();

    return load_check(LOCK, t, fcntl(fd, F_OFD_SETLKW, &lock), path);
}

bool load_is_there(const char *path, bool expected, int64_t size)
{
    int64_t t = load_now_ns();
    struct stat st;
    int rc = stat(path, &st), e = errno;

    load_took(STAT, t);
    if (rc < 0 && e != ENOENT)
        return load_wrong("stat %s: %s", path, strerror(e));
    if ((rc == 0) != expected)
        return load_wrong("%s: %s", path, expected ? "is not there" : "should be gone");
    if (expected && size >= 0 && st.st_size != size)
        return load_wrong("%s: %lld bytes, not %lld", path, (long long)st.st_size, (long long)size);
    return true;
}
