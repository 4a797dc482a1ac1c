#include "cli/mount_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "host/mountinfo.h"
#include "host/timed_call.h"

#define NAME    "/.memefs"
#define PATIENT (5 * MFS_SEC)
#define MOST    (64U << 20) /* bytes of a file */
#define ONCE    (256U << 10)

static bool is_ours(const struct mfs_mountinfo *info)
{
    return strcmp(info->fstype, "fuse.memefs") == 0;
}

/* ---- which mount ----------------------------------------------------------------------------- */

struct search {
    struct mfs_mountinfo found;
    unsigned n;
};

static int note(void *arg, const struct mfs_mountinfo *m)
{
    struct search *s = arg;

    if (is_ours(m) && strcmp(m->root, "/") == 0 && s->n++ == 0)
        s->found = *m;
    return 0;
}

static int find_only(struct mfs_mountinfo *info, struct mfs_err *err)
{
    struct search *s = calloc(1, sizeof *s);
    struct mfs_buf text;
    unsigned n;
    int rc;

    if (s == NULL)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    mfs_buf_init(&text);
    rc = mfs_mountinfo_read(0, &text);
    if (rc == 0)
        mfs_mountinfo_each(mfs_buf_data(&text), note, s);
    mfs_buf_fini(&text);
    *info = s->found;
    n = s->n;
    free(s);
    if (rc < 0)
        return mfs_err_set(err, rc, "mounts: %s", strerror(-rc));
    if (n == 0)
        return mfs_err_set(err, -ENOENT, "no mount of MemEFS is here");
    return n > 1 ? mfs_err_set(err, -EINVAL, "%u mounts of MemEFS are here: name one", n) : 0;
}

/* Without looking at the path, unless it does not seem to be ours: it may have links. */
static int find_over(const char *path, char full[PATH_MAX], struct mfs_mountinfo *info,
                     struct mfs_err *err)
{
    int rc = mfs_file_absolute(path, full, PATH_MAX);

    if (rc == 0)
        rc = mfs_mountinfo_over(full, info);
    if (rc == 0 && !is_ours(info) && realpath(path, full) != NULL)
        rc = mfs_mountinfo_over(full, info);
    if (rc < 0)
        return mfs_err_set(err, rc, "%s: %s", path, strerror(-rc));
    if (!is_ours(info))
        return mfs_err_set(err, -EINVAL, "%s: not on a mount of MemEFS", path);
    if (strcmp(info->root, "/") != 0)
        return mfs_err_set(err, -EINVAL,
                           "%s: only a part of the file system is mounted there, name the whole",
                           path);
    return 0;
}

static int open_dir(struct mfs_mount_files *f, struct mfs_err *err)
{
    char path[PATH_MAX];
    int rc = mfs_text_format(path, sizeof path, "%s" NAME, f->mount);

    if (rc == 0)
        rc = mfs_timed_call(mfs_timed_stat, path, PATIENT);
    if (rc == 0) {
        f->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        rc = f->dir < 0 ? -errno : 0;
    }
    if (rc == -ETIMEDOUT)
        return mfs_err_set(err, rc,
                           "%s: its root directory can't be looked at: partition 0, or the client, "
                           "does not answer; cm doctor tells more",
                           f->mount);
    if (rc == -ENOENT)
        return mfs_err_set(err, rc, "%s: is mounted with nostats, or by an older memefs", f->mount);
    return rc < 0 ? mfs_err_set(err, rc, "%s: %s", path, strerror(-rc)) : 0;
}

int mfs_mount_files_open(const char *path, struct mfs_mount_files *f, struct mfs_err *err)
{
    struct mfs_mountinfo *info = calloc(1, sizeof *info);
    char full[PATH_MAX];
    int rc;

    if (info == NULL)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    rc = path != NULL ? find_over(path, full, info, err) : find_only(info, err);
    if (rc == 0) {
        size_t top = strlen(info->point);

        snprintf(f->mount, sizeof f->mount, "%s", info->point);
        snprintf(f->below, sizeof f->below, "%s",
                 path != NULL && full[top] == '/' ? full + top + 1 : ".");
        rc = open_dir(f, err);
    }
    free(info);
    return rc;
}

void mfs_mount_files_close(struct mfs_mount_files *f)
{
    close(f->dir);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int try_to_open(const void *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

/* A mount of which all workers wait answers nothing at all: that is tried first, with a limit. */
static int open_file(const struct mfs_mount_files *f, const char *name, int flags,
                     struct mfs_err *err)
{
    char path[PATH_MAX];
    int fd, rc = mfs_text_format(path, sizeof path, "%s" NAME "/%s", f->mount, name);

    if (rc == 0)
        rc = mfs_timed_call(try_to_open, path, PATIENT);
    if (rc == -ETIMEDOUT)
        return mfs_err_set(err, rc,
                           "%s: the client does not answer: all its workers wait; cm doctor "
                           "tells more",
                           path);
    fd = openat(f->dir, name, O_RDONLY | O_CLOEXEC | flags);
    if (fd >= 0)
        return fd;
    return mfs_err_set(err, -errno, "%s" NAME "/%s: %s%s", f->mount, name, strerror(errno),
                       errno == EACCES ? ": only root and the mount's owner may see it" : "");
}

int mfs_mount_files_read(const struct mfs_mount_files *f, const char *name, struct mfs_buf *to,
                         struct mfs_err *err)
{
    int fd = open_file(f, name, 0, err), rc;

    if (fd < 0)
        return fd;
    rc = mfs_file_read_fd(fd, MOST, to);
    close(fd);
    return rc < 0 ? mfs_err_set(err, rc, "%s" NAME "/%s: %s", f->mount, name, strerror(-rc)) : 0;
}

int mfs_line_reader_open(struct mfs_line_reader *r, const struct mfs_mount_files *f,
                         const char *name, int wait, struct mfs_err *err)
{
    r->fd = open_file(f, name, wait ? 0 : O_NONBLOCK, err);
    mfs_buf_init(&r->buf);
    return r->fd < 0 ? r->fd : 0;
}

void mfs_line_reader_close(struct mfs_line_reader *r)
{
    close(r->fd);
    mfs_buf_fini(&r->buf);
}

int mfs_line_reader_read(struct mfs_line_reader *r, int (*each)(void *arg, char *line, size_t len),
                         void *arg)
{
    char *room = mfs_buf_reserve(&r->buf, ONCE), *end;
    ssize_t n;
    int rc = 0;

    if (room == NULL)
        return -ENOMEM;
    n = read(r->fd, room, ONCE);
    if (n <= 0)
        return n < 0 ? -errno : 0;
    mfs_buf_commit(&r->buf, (size_t)n);
    while (rc == 0 && (end = memchr(mfs_buf_data(&r->buf), '\n', mfs_buf_len(&r->buf))) != NULL) {
        size_t len = (size_t)(end - mfs_buf_data(&r->buf));

        rc = each(arg, mfs_buf_data(&r->buf), len);
        mfs_buf_consume(&r->buf, len + 1);
    }
    return rc != 0 ? rc : 1;
}
