/* cm renames the full file and begins another (events.c), so that the files are read by what they
 * are, not by their names: an open one is held until all of it is read, and then the next one is
 * the one that was renamed behind it, if that is another one by now, else the present one. */
#include "cm/state/event_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"

#define READ_CHUNK 65536

struct mfs_event_reader {
    char path[PATH_MAX], old[PATH_MAX];
    int fd;
    struct stat file; /* that is open */
    struct mfs_buf b; /* read and not yet given out */
    bool torn;
};

static bool is_open(const struct mfs_event_reader *r, const struct stat *st)
{
    return r->fd >= 0 && st->st_dev == r->file.st_dev && st->st_ino == r->file.st_ino;
}

/* 1: another file than before is open; 0: there is none, or it is the same. */
static int try_open(struct mfs_event_reader *r, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc;
    struct stat st;

    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    rc = fstat(fd, &st) ? -errno : !is_open(r, &st);
    if (rc <= 0) {
        close(fd);
        return rc;
    }
    if (r->fd >= 0)
        close(r->fd);
    r->torn |= mfs_buf_len(&r->b) > 0;
    mfs_buf_clear(&r->b);
    r->fd = fd;
    r->file = st;
    return 1;
}

static bool is_current(const struct mfs_event_reader *r)
{
    struct stat st;

    return !stat(r->path, &st) && is_open(r, &st);
}

/* As try_open. */
static int next_file(struct mfs_event_reader *r)
{
    int rc = try_open(r, r->old);

    return rc ? rc : try_open(r, r->path);
}

int mfs_event_reader_open(const struct mfs_paths *p, struct mfs_event_reader **out)
{
    struct mfs_event_reader *r = calloc(1, sizeof *r);
    int rc;

    *out = r;
    if (!r)
        return -ENOMEM;
    r->fd = -1;
    mfs_buf_init(&r->b);
    mfs_text_copy(r->path, sizeof r->path, p->events);
    mfs_text_copy(r->old, sizeof r->old, p->old_events);
    rc = next_file(r);
    if (rc > 0)
        return 0;
    mfs_event_reader_close(r);
    *out = NULL;
    return rc ? rc : -ENOENT;
}

void mfs_event_reader_close(struct mfs_event_reader *r)
{
    if (!r)
        return;
    if (r->fd >= 0)
        close(r->fd);
    mfs_buf_fini(&r->b);
    free(r);
}

/* The next whole line of what has been read, if it is an event. */
static int take_line(struct mfs_event_reader *r, struct mfs_event *e)
{
    const char *end;
    int rc = 0;

    while (!rc && (end = memchr(mfs_buf_data(&r->b), '\n', mfs_buf_len(&r->b)))) {
        size_t len = (size_t)(end - mfs_buf_data(&r->b));

        rc = mfs_schema_decode(&mfs_event_schema, mfs_buf_data(&r->b), len, e, NULL);
        mfs_buf_consume(&r->b, len + 1);
        r->torn |= rc == -EINVAL;
        rc = rc == -EINVAL ? 0 : rc ? rc : 1;
    }
    return rc;
}

/* 1: there was more. */
static int read_more(struct mfs_event_reader *r)
{
    char *to = mfs_buf_reserve(&r->b, READ_CHUNK);
    ssize_t n;

    if (!to)
        return -ENOMEM;
    n = read(r->fd, to, READ_CHUNK);
    if (n < 0)
        return -errno;
    mfs_buf_commit(&r->b, (size_t)n);
    return n > 0;
}

/* What is behind the last whole line is read again later, as cm may have to take it back. */
static int forget_rest(struct mfs_event_reader *r)
{
    if (lseek(r->fd, -(off_t)mfs_buf_len(&r->b), SEEK_CUR) < 0)
        return -errno;
    mfs_buf_clear(&r->b);
    return 0;
}

int mfs_event_reader_next(struct mfs_event_reader *r, struct mfs_event *e)
{
    bool current;
    int rc = 0;

    for (;;) {
        rc = mfs_buf_len(&r->b) ? take_line(r, e) : 0;
        if (rc)
            return rc;
        current = is_current(r); /* asked first: what is written before the change is read then */
        rc = read_more(r);
        if (rc < 0)
            return rc;
        if (rc)
            continue;
        rc = current ? 0 : next_file(r);
        if (rc <= 0)
            return rc ? rc : forget_rest(r);
    }
}

bool mfs_event_reader_torn(const struct mfs_event_reader *r)
{
    return r->torn;
}

bool mfs_event_reader_gone(const struct mfs_event_reader *r)
{
    struct stat st;

    return fstat(r->fd, &st) || (!st.st_nlink && !is_current(r) && access(r->path, F_OK));
}

static void reverse(struct mfs_event *e, uint32_t n)
{
    for (uint32_t i = 0; i < n / 2; i++) {
        struct mfs_event other = e[i];

        e[i] = e[n - 1 - i];
        e[n - 1 - i] = other;
    }
}

/* Turns a full ring so that what is at `first` comes first. */
static void straighten(struct mfs_event *ring, uint32_t n, uint32_t first)
{
    reverse(ring, first);
    reverse(ring + first, n - first);
    reverse(ring, n);
}

int mfs_event_last(const struct mfs_paths *p, bool (*match)(void *arg, const struct mfs_event *e),
                   void *arg, struct mfs_event *out, uint32_t n)
{
    struct mfs_event_reader *r;
    struct mfs_event e;
    uint64_t seen = 0;
    int rc = mfs_event_reader_open(p, &r);

    if (rc)
        return rc;
    while ((rc = mfs_event_reader_next(r, &e)) > 0)
        if (match(arg, &e))
            out[seen++ % n] = e;
    mfs_event_reader_close(r);
    if (rc)
        return rc;
    if (seen > n)
        straighten(out, n, (uint32_t)(seen % n));
    return (int)(seen < n ? seen : n);
}

int64_t mfs_event_seconds(const struct mfs_event *e)
{
    struct tm tm = {0};

    return strptime(e->time, "%Y-%m-%dT%H:%M:%S", &tm) ? timegm(&tm) : -1;
}
