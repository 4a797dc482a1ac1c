/* Calls of the soak, timed, counted under the fault that is, and judged by their errno. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "soak.h"

#define FUSE_MAGIC 0x65735546

const char *const soak_call_name[SOAK_CALLS] = {"open",     "close",  "write", "read",   "fsync",
                                                "truncate", "rename", "link",  "unlink", "mkdir",
                                                "rmdir",    "list",   "stat",  "lock",   "append"};

int64_t soak_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

uint64_t soak_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

uint64_t soak_rnd(struct soak_worker *w, uint64_t below)
{
    w->random += 0x9e3779b97f4a7c15ULL;
    return soak_mix(w->random) % below;
}

static void tell(struct soak *s, const char *fmt, va_list ap)
{
    char line[1200];
    struct timespec ts;
    struct tm tm;
    int n;

    clock_gettime(CLOCK_REALTIME, &ts);
    gmtime_r(&ts.tv_sec, &tm);
    n = (int)strftime(line, sizeof line, "%FT%T", &tm);
    n += snprintf(line + n, sizeof line - (size_t)n, ".%03ldZ WRONG (%s): ", ts.tv_nsec / 1000000,
                  s->fault[atomic_load(&s->now)].name);
    vsnprintf(line + n, sizeof line - (size_t)n, fmt, ap);
    if (atomic_fetch_add(&s->wrong, 1) < 40) /* what is wrong once may be so at each look */
        fprintf(stderr, "%s\n", line);
    atomic_store(&s->failed, true);
}

bool soak_wrong(struct soak *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    tell(s, fmt, ap);
    va_end(ap);
    return false;
}

bool soak_wrong_file(struct soak *s, const char *path, uint64_t ino, const char *fmt, ...)
{
    char text[500];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (!ino)
        return soak_wrong(s, "%s: %s", path, text);
    return soak_wrong(s, "%s (inode %llx): %s", path, (unsigned long long)ino, text);
}

uint64_t soak_ino(int fd)
{
    struct statx st;

    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st))
        return 0;
    return st.stx_ino;
}

char *soak_path(const struct soak_worker *w, unsigned mount, char out[SOAK_PATH], const char *fmt,
                ...)
{
    int n = snprintf(out, SOAK_PATH, "%s/soak/", w->s->mount[mount]);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(out + n, SOAK_PATH - (size_t)n, fmt, ap);
    va_end(ap);
    return out;
}

/* What a call may say when something of the deployment is dead, stopped, cut off, full or leaving,
 * or its mount is. ENOENT is judged by who asks: a mount that is not there looks like that. */
static bool explained(int e)
{
    switch (e) {
    case EIO:
    case ETIMEDOUT:
    case ENOSPC:
    case EROFS:
    case ENOTCONN:
    case ECONNABORTED:
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENODEV:
    case ESTALE:
    case EINTR:
    case ENOTEMPTY:
        return true;
    default:
        return false;
    }
}

static void raise_to(_Atomic int64_t *to, int64_t ns)
{
    int64_t old = atomic_load(to);

    while (ns > old && !atomic_compare_exchange_weak(to, &old, ns))
        ;
}

void soak_begin(struct soak_worker *w, enum soak_call call, const char *path)
{
    snprintf(w->s->under_way[w->id].path, SOAK_PATH, "%s", path);
    atomic_store(&w->s->under_way[w->id].call, call);
    atomic_store(&w->s->under_way[w->id].since, soak_now());
}

int soak_end(struct soak_worker *w, enum soak_call call, int rc, const char *path)
{
    struct soak *s = w->s;
    int64_t ns = soak_now() - atomic_load(&s->under_way[w->id].since);
    struct soak_fault *fault = &s->fault[atomic_load(&s->now)];

    atomic_store(&s->under_way[w->id].since, 0);
    atomic_fetch_add(&s->calls[call], 1);
    atomic_fetch_add(&fault->calls, 1);
    raise_to(&s->longest[call], ns);
    raise_to(&fault->longest, ns);
    if (ns > (int64_t)s->bound * 1000000000)
        soak_wrong(s, "%s %s: %.1f s, the bound is %u s", soak_call_name[call], path,
                   (double)ns / 1e9, s->bound);
    if (rc >= 0 || rc == -ENOENT || rc == -EEXIST) /* which may be the right answer */
        return rc;
    atomic_fetch_add(&s->errors[call], 1);
    atomic_fetch_add(&s->errnos[-rc % (int)SOAK_ERRNOS], 1);
    atomic_fetch_add(&fault->errors, 1);
    if (!explained(-rc))
        soak_wrong(s, "%s %s: %s", soak_call_name[call], path, strerror(-rc));
    return rc;
}

static int ended(struct soak_worker *w, enum soak_call call, int rc, const char *path)
{
    return soak_end(w, call, rc < 0 ? -errno : rc, path);
}

int soak_open(struct soak_worker *w, const char *path, int flags)
{
    soak_begin(w, SOAK_OPEN, path);
    return ended(w, SOAK_OPEN, open(path, flags | O_CLOEXEC, 0644), path);
}

int soak_close(struct soak_worker *w, int fd, const char *path)
{
    soak_begin(w, SOAK_CLOSE, path);
    return ended(w, SOAK_CLOSE, close(fd), path);
}

int soak_fsync(struct soak_worker *w, int fd, const char *path)
{
    soak_begin(w, SOAK_FSYNC, path);
    return ended(w, SOAK_FSYNC, fsync(fd), path);
}

int soak_write(struct soak_worker *w, int fd, const void *p, size_t n, uint64_t off,
               const char *path)
{
    for (size_t done = 0; done < n;) {
        int rc;

        soak_begin(w, SOAK_WRITE, path);
        rc = ended(w, SOAK_WRITE,
                   (int)pwrite(fd, (const char *)p + done, n - done, (off_t)(off + done)), path);
        if (rc < 0)
            return rc;
        done += (size_t)rc;
        atomic_fetch_add(&w->s->written, (unsigned)rc);
    }
    return 0;
}

int soak_append(struct soak_worker *w, int fd, const void *p, size_t n, const char *path)
{
    int rc;

    soak_begin(w, SOAK_APPEND, path);
    rc = ended(w, SOAK_APPEND, (int)write(fd, p, n), path);
    if (rc >= 0 && (size_t)rc != n) {
        soak_wrong_file(w->s, path, soak_ino(fd), "append: %d of %zu bytes", rc, n);
        return -EIO;
    }
    return rc < 0 ? rc : 0;
}

ssize_t soak_read(struct soak_worker *w, int fd, void *p, size_t n, uint64_t off, const char *path)
{
    size_t done = 0;
    int rc = 1;

    while (done < n && rc > 0) {
        soak_begin(w, SOAK_READ, path);
        rc = ended(w, SOAK_READ, (int)pread(fd, (char *)p + done, n - done, (off_t)(off + done)),
                   path);
        if (rc < 0)
            return rc;
        done += (size_t)rc;
        atomic_fetch_add(&w->s->fetched, (unsigned)rc);
    }
    return (ssize_t)done;
}

int soak_truncate(struct soak_worker *w, const char *path, uint64_t size)
{
    soak_begin(w, SOAK_TRUNCATE, path);
    return ended(w, SOAK_TRUNCATE, truncate(path, (off_t)size), path);
}

int soak_rename(struct soak_worker *w, const char *from, const char *to)
{
    soak_begin(w, SOAK_RENAME, from);
    return ended(w, SOAK_RENAME, rename(from, to), from);
}

int soak_link(struct soak_worker *w, const char *from, const char *to)
{
    soak_begin(w, SOAK_LINK, from);
    return ended(w, SOAK_LINK, link(from, to), from);
}

int soak_unlink(struct soak_worker *w, const char *path)
{
    soak_begin(w, SOAK_UNLINK, path);
    return ended(w, SOAK_UNLINK, unlink(path), path);
}

int soak_mkdir(struct soak_worker *w, const char *path)
{
    soak_begin(w, SOAK_MKDIR, path);
    return ended(w, SOAK_MKDIR, mkdir(path, 0755), path);
}

int soak_rmdir(struct soak_worker *w, const char *path)
{
    soak_begin(w, SOAK_RMDIR, path);
    return ended(w, SOAK_RMDIR, rmdir(path), path);
}

/* Never waits in the kernel: who waits there for another's lock would look like a hang. */
int soak_lock(struct soak_worker *w, int fd, bool lock, const char *path)
{
    struct flock what = {.l_type = lock ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET, .l_len = 8};
    int rc;

    soak_begin(w, SOAK_LOCK, path);
    rc = fcntl(fd, F_OFD_SETLK, &what) < 0 ? -errno : 0;
    if (rc == -EAGAIN || rc == -EACCES) {
        soak_end(w, SOAK_LOCK, 0, path);
        return -EAGAIN;
    }
    return soak_end(w, SOAK_LOCK, rc, path);
}

/* The device of the mount; 0 when nothing is mounted, or it does not answer. */
static dev_t device(struct soak_worker *w, unsigned mount)
{
    const char *root = w->s->mount[mount];
    struct statfs fs;
    struct stat st;
    int rc;

    soak_begin(w, SOAK_STAT, root);
    rc = ended(w, SOAK_STAT, statfs(root, &fs), root);
    if (rc < 0 || fs.f_type != FUSE_MAGIC)
        return 0;
    soak_begin(w, SOAK_STAT, root);
    return ended(w, SOAK_STAT, stat(root, &st), root) < 0 ? 0 : st.st_dev;
}

int soak_stat(struct soak_worker *w, unsigned mount, const char *path, struct stat *st)
{
    dev_t before = device(w, mount);
    int rc;

    if (!before)
        return -ENOTCONN;
    soak_begin(w, SOAK_STAT, path);
    rc = ended(w, SOAK_STAT, lstat(path, st), path);
    if (rc == -ENOENT && device(w, mount) != before)
        return -ENOTCONN;
    return rc;
}

int64_t soak_stale_until(int rc)
{
    bool died = rc == -ENOTCONN || rc == -ECONNABORTED;

    return died ? soak_now() + (int64_t)SOAK_STALE * 1000000000 : 0;
}

bool soak_go_on(struct soak_worker *w)
{
    if (w->s->pause)
        usleep(w->s->pause);
    return !atomic_load(&w->s->stop);
}

int soak_settle(struct soak_worker *w, int (*look)(struct soak_worker *w, void *arg), void *arg)
{
    for (;;) {
        int64_t stopped = atomic_load(&w->s->stopped);
        int rc = look(w, arg);

        if (rc >= 0 || (stopped && soak_now() > stopped + (int64_t)SOAK_SETTLE * 1000000000))
            return rc;
        usleep(200000);
    }
}

static int make_dir(struct soak_worker *w, void *arg)
{
    int rc = soak_mkdir(w, arg);

    return rc == -EEXIST ? 0 : rc;
}

bool soak_make_dir(struct soak_worker *w, char *path)
{
    int rc = soak_settle(w, make_dir, path);

    return rc == 0 || soak_wrong(w->s, "mkdir %s: %s", path, strerror(-rc));
}

void soak_gone(struct soak_worker *w, const char *path, int rc)
{
    const char *name = strstr(path, "/soak/");

    if (w->s->lost_fd < 0 || rc != -EIO) {
        struct stat st = {0};

        soak_begin(w, SOAK_STAT, path);
        if (ended(w, SOAK_STAT, stat(path, &st), path) < 0)
            st.st_ino = 0;
        soak_wrong_file(w->s, path, st.st_ino, "can't be read in the end: %s", strerror(-rc));
        return;
    }
    atomic_fetch_add(&w->s->lost, 1);
    dprintf(w->s->lost_fd, "%s\n", name ? name + 1 : path);
}
