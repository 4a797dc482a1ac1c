/* Reading and writing of open files.
 *
 * Nobody keeps pages between the library and the vfs: reads and writes are the direct ones of
 * vfs/vfs.h. Each goes on until all of it is done or it ends short, as those of system calls do. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/lib.h"

#define PIECE ((size_t)4 << 20)  /* of a long write: it is sent while the next one is taken */
#define READS ((size_t)64 << 20) /* of a long read, whose stripes come to the caller's buffer */
#define MOST  ((size_t)INT_MAX & ~(size_t)4095) /* bytes that one call takes, as Linux */

static int check(const struct memefs_file *f, bool write)
{
    int mode, rc = mfs_lib_enter_file(f);

    if (rc < 0)
        return rc;
    if (f->open == NULL)
        return S_ISDIR(f->attr.mode) && !write && !(f->flags & O_PATH) ? -EISDIR : -EBADF;
    mode = f->flags & O_ACCMODE;
    return mode == O_RDWR || mode == (write ? O_WRONLY : O_RDONLY) ? 0 : -EBADF;
}

ssize_t mfs_lib_read(struct memefs_file *f, void *buf, size_t len, uint64_t off)
{
    size_t done = 0;
    ssize_t n = 0;

    while (done < len) {
        size_t piece = len - done < READS ? len - done : READS;

        n = mfs_vfs_read(f->open, (char *)buf + done, piece, off + done, true, NULL);
        if (n <= 0)
            break;
        done += (size_t)n;
        if ((size_t)n < piece)
            break;
    }
    return done > 0 ? (ssize_t)done : n;
}

static ssize_t write_pieces(struct memefs_file *f, const void *buf, size_t len, uint64_t off)
{
    size_t done = 0;
    ssize_t n = 0;

    while (done < len) {
        size_t piece = len - done < PIECE ? len - done : PIECE;

        n = mfs_vfs_write(f->open, (const char *)buf + done, piece, off + done, f->flags,
                          f->fs->cred.drop);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done > 0 ? (ssize_t)done : n;
}

/* --- at an offset ----------------------------------------------------------------------------- */

static int check_range(const void *buf, size_t *len, off_t off)
{
    if (off < 0 || (buf == NULL && *len > 0))
        return -EINVAL;
    if (*len > MOST)
        *len = MOST;
    return 0;
}

/* As a kernel does before an append: it is told where the file ends, which it believes. */
static uint64_t end_of(struct memefs_file *f)
{
    struct mfs_attr attr = {0};

    return mfs_vfs_size(f->open, &attr) || mfs_vfs_getattr(f->fs->vfs, f->attr.ino, &attr) == 0
               ? attr.size
               : 0;
}

/* *at becomes what is behind the bytes. An append is one write, however long: nothing comes between
 * its bytes. */
static ssize_t write_at(struct memefs_file *f, const void *buf, size_t len, off_t *at)
{
    uint64_t off = f->flags & O_APPEND ? end_of(f) : (uint64_t)*at;
    ssize_t n = f->flags & O_APPEND
                    ? mfs_vfs_write_to(f->open, buf, len, &off, f->flags, f->fs->cred.drop)
                    : write_pieces(f, buf, len, off);

    if (n > 0)
        *at = (off_t)off + n;
    return n;
}

ssize_t memefs_pread(struct memefs_file *file, void *buf, size_t len, off_t off)
{
    ssize_t n = check(file, false);

    if (n == 0)
        n = check_range(buf, &len, off);
    if (n == 0)
        n = mfs_lib_read(file, buf, len, (uint64_t)off);
    return (ssize_t)mfs_lib_end(n, "read", NULL);
}

ssize_t memefs_pwrite(struct memefs_file *file, const void *buf, size_t len, off_t off)
{
    ssize_t n = check(file, true);

    if (n == 0)
        n = check_range(buf, &len, off);
    if (n == 0)
        n = write_at(file, buf, len, &off);
    return (ssize_t)mfs_lib_end(n, "write", NULL);
}

/* --- at the position -------------------------------------------------------------------------- */

ssize_t memefs_read(struct memefs_file *file, void *buf, size_t len)
{
    ssize_t n = check(file, false);

    if (n == 0)
        n = check_range(buf, &len, 0);
    if (n < 0)
        return (ssize_t)mfs_lib_end(n, "read", NULL);
    pthread_mutex_lock(&file->lock);
    n = mfs_lib_read(file, buf, len, (uint64_t)file->pos);
    if (n > 0)
        file->pos += n;
    pthread_mutex_unlock(&file->lock);
    return (ssize_t)mfs_lib_end(n, "read", NULL);
}

ssize_t memefs_write(struct memefs_file *file, const void *buf, size_t len)
{
    ssize_t n = check(file, true);

    if (n == 0)
        n = check_range(buf, &len, 0);
    if (n < 0)
        return (ssize_t)mfs_lib_end(n, "write", NULL);
    pthread_mutex_lock(&file->lock);
    n = write_at(file, buf, len, &file->pos);
    pthread_mutex_unlock(&file->lock);
    return (ssize_t)mfs_lib_end(n, "write", NULL);
}

static int64_t seek(struct memefs_file *f, off_t off, int whence)
{
    struct mfs_attr attr = {0};
    int64_t base = 0;
    int rc;

    switch (whence) {
    case SEEK_SET:
        break;
    case SEEK_CUR:
        base = f->pos;
        break;
    case SEEK_END:
        rc = mfs_vfs_getattr(f->fs->vfs, f->attr.ino, &attr);
        if (rc < 0)
            return rc;
        base = (int64_t)attr.size;
        break;
    case SEEK_DATA:
    case SEEK_HOLE:
        return off < 0 ? -ENXIO : mfs_vfs_lseek(f->open, (uint64_t)off, whence);
    default:
        return -EINVAL;
    }
    if (off > 0 && base > INT64_MAX - off)
        return -EOVERFLOW;
    return base + off < 0 ? -EINVAL : base + off;
}

int64_t memefs_lseek(struct memefs_file *file, off_t off, int whence)
{
    int64_t at = mfs_lib_enter_file(file);

    if (at == 0 && file->open == NULL)
        at = S_ISDIR(file->attr.mode) && !(file->flags & O_PATH) ? -EISDIR : -EBADF;
    if (at < 0)
        return mfs_lib_end(at, "lseek", NULL);
    pthread_mutex_lock(&file->lock);
    at = seek(file, off, whence);
    if (at >= 0)
        file->pos = at;
    pthread_mutex_unlock(&file->lock);
    return mfs_lib_end(at, "lseek", NULL);
}

/* --- several buffers -------------------------------------------------------------------------- */

static ssize_t total(const struct iovec *iov, int n)
{
    size_t sum = 0;

    if (n < 0 || n > IOV_MAX || (n > 0 && iov == NULL))
        return -EINVAL;
    for (int i = 0; i < n; i++) {
        if (iov[i].iov_base == NULL && iov[i].iov_len > 0)
            return -EINVAL;
        if (iov[i].iov_len > SSIZE_MAX - sum)
            return -EINVAL;
        sum += iov[i].iov_len;
    }
    return (ssize_t)sum;
}

static ssize_t each(struct memefs_file *f, const struct iovec *iov, int count, off_t *at,
                    bool write)
{
    ssize_t n = 0;
    size_t done = 0;

    for (int i = 0; i < count; i++) {
        size_t len = iov[i].iov_len < MOST - done ? iov[i].iov_len : MOST - done;

        n = write ? write_at(f, iov[i].iov_base, len, at)
                  : mfs_lib_read(f, iov[i].iov_base, len, (uint64_t)*at);
        if (n > 0) {
            done += (size_t)n;
            *at += write ? 0 : n;
        }
        if (n < (ssize_t)iov[i].iov_len)
            break;
    }
    return done > 0 ? (ssize_t)done : n;
}

/* Its bytes are to stay together. */
static ssize_t append_all(struct memefs_file *f, const struct iovec *iov, int count, size_t len,
                          off_t *at)
{
    char *all = malloc(len + 1);
    size_t sum = 0;
    ssize_t n;

    if (all == NULL)
        return -ENOMEM;
    for (int i = 0; i < count; i++) {
        if (iov[i].iov_len > 0)
            memcpy(all + sum, iov[i].iov_base, iov[i].iov_len);
        sum += iov[i].iov_len;
    }
    n = write_at(f, all, len < MOST ? len : MOST, at);
    free(all);
    return n;
}

/* *at becomes what is behind the bytes. */
static ssize_t move(struct memefs_file *f, const struct iovec *iov, int count, off_t *at,
                    bool write)
{
    ssize_t len = total(iov, count);

    if (*at < 0 || len < 0)
        return *at < 0 ? -EINVAL : len;
    return write && (f->flags & O_APPEND) && count > 1 ? append_all(f, iov, count, (size_t)len, at)
                                                       : each(f, iov, count, at, write);
}

/* All of it is one use of the position. */
static ssize_t move_at_position(struct memefs_file *f, const struct iovec *iov, int count,
                                bool write)
{
    ssize_t n = check(f, write);

    if (n < 0)
        return n;
    pthread_mutex_lock(&f->lock);
    n = move(f, iov, count, &f->pos, write);
    pthread_mutex_unlock(&f->lock);
    return n;
}

ssize_t memefs_readv(struct memefs_file *file, const struct iovec *iov, int n)
{
    return (ssize_t)mfs_lib_end(move_at_position(file, iov, n, false), "read", NULL);
}

ssize_t memefs_preadv(struct memefs_file *file, const struct iovec *iov, int n, off_t off)
{
    ssize_t done = check(file, false);

    if (done == 0)
        done = move(file, iov, n, &off, false);
    return (ssize_t)mfs_lib_end(done, "read", NULL);
}

ssize_t memefs_writev(struct memefs_file *file, const struct iovec *iov, int n)
{
    return (ssize_t)mfs_lib_end(move_at_position(file, iov, n, true), "write", NULL);
}

ssize_t memefs_pwritev(struct memefs_file *file, const struct iovec *iov, int n, off_t off)
{
    ssize_t done = check(file, true);

    if (done == 0)
        done = move(file, iov, n, &off, true);
    return (ssize_t)mfs_lib_end(done, "write", NULL);
}

/* --- the rest --------------------------------------------------------------------------------- */

int memefs_fsync(struct memefs_file *file)
{
    int rc = mfs_lib_enter_file(file);

    if (rc == 0 && (file->flags & O_PATH))
        rc = -EBADF;
    if (rc == 0 && file->open != NULL)
        rc = mfs_vfs_fsync(file->open);
    return (int)mfs_lib_end(rc, "fsync", NULL);
}

int memefs_fdatasync(struct memefs_file *file)
{
    return memefs_fsync(file);
}

int memefs_fallocate(struct memefs_file *file, int mode, off_t off, off_t len)
{
    int rc = check(file, true);

    if (rc == 0 && (off < 0 || len <= 0))
        rc = -EINVAL;
    if (rc == 0 && off > INT64_MAX - len)
        rc = -EFBIG;
    if (rc == 0)
        rc = mfs_vfs_fallocate(file->open, mode, (uint64_t)off, (uint64_t)len, file->fs->cred.drop);
    return (int)mfs_lib_end(rc, "fallocate", NULL);
}

static ssize_t copy(struct memefs_file *in, off_t from, struct memefs_file *out, off_t to,
                    size_t len)
{
    size_t done = 0;
    ssize_t n = 0;

    if (len > MOST)
        len = MOST;
    while (done < len) {
        n = mfs_vfs_copy_range(in->open, (uint64_t)from + done, out->open, (uint64_t)to + done,
                               len - done, out->fs->cred.drop);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done > 0 ? (ssize_t)done : n;
}

static off_t position(struct memefs_file *f, const off_t *given)
{
    off_t at;

    if (given != NULL)
        return *given;
    pthread_mutex_lock(&f->lock);
    at = f->pos;
    pthread_mutex_unlock(&f->lock);
    return at;
}

static void advance(struct memefs_file *f, off_t *given, off_t to)
{
    if (given != NULL) {
        *given = to;
        return;
    }
    pthread_mutex_lock(&f->lock);
    f->pos = to;
    pthread_mutex_unlock(&f->lock);
}

/* As Linux: only what there is can overlap what it is copied to. */
static size_t what_is_left(struct memefs_file *f, off_t from, size_t len)
{
    uint64_t end = end_of(f), left = end > (uint64_t)from ? end - (uint64_t)from : 0;

    return left < len ? (size_t)left : len;
}

/* As Linux: what is copied within a file does not overlap. */
static bool overlaps(const struct memefs_file *in, off_t from, const struct memefs_file *out,
                     off_t to, size_t len)
{
    uint64_t apart = from > to ? (uint64_t)(from - to) : (uint64_t)(to - from);

    return in->attr.ino == out->attr.ino && apart < len;
}

ssize_t memefs_copy_file_range(struct memefs_file *in, off_t *off_in, struct memefs_file *out,
                               off_t *off_out, size_t len, unsigned flags)
{
    ssize_t n = check(in, false);
    off_t from, to;

    if (n == 0)
        n = check(out, true);
    if (n == 0 && in->fs != out->fs)
        n = -EXDEV;
    if (n == 0 && (out->flags & O_APPEND))
        n = -EBADF;
    if (n < 0)
        return (ssize_t)mfs_lib_end(n, "copy_file_range", NULL);
    from = position(in, off_in);
    to = position(out, off_out);
    if (from >= 0 && in->attr.ino == out->attr.ino)
        len = what_is_left(in, from, len);
    if (flags != 0 || from < 0 || to < 0 || overlaps(in, from, out, to, len))
        n = -EINVAL;
    else
        n = copy(in, from, out, to, len);
    if (n > 0) {
        advance(in, off_in, from + n);
        advance(out, off_out, to + n);
    }
    return (ssize_t)mfs_lib_end(n, "copy_file_range", NULL);
}
