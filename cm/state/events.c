/* The event file, which cm alone writes. What does not fit, as the file system is full, is taken
 * back: the next event is not to be glued to half of one. */
#include "cm/state/events.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"

static uint64_t bound;

void mfs_event_bound(uint64_t bytes)
{
    bound = bytes;
}

#define COUNTS_MOST 128

static struct mfs_event_count counts[COUNTS_MOST];
static unsigned ncounts;

static void count(const char *what)
{
    unsigned i = 0;

    while (i < ncounts && strcmp(counts[i].what, what) != 0)
        i++;
    if (i == COUNTS_MOST)
        i--;
    if (i == ncounts) {
        ncounts++;
        mfs_text_copy(counts[i].what, sizeof counts[i].what,
                      ncounts == COUNTS_MOST ? "other" : what);
    }
    counts[i].n++;
}

const struct mfs_event_count *mfs_event_counts(unsigned *n)
{
    *n = ncounts;
    return counts;
}

/* ---- the last ones --------------------------------------------------------------------------- */

#define RECALLED (32L << 10) /* bytes of the file's end */

static struct mfs_event recent[MFS_EVENTS_RECENT];
static uint64_t nrecent; /* so far: the last of them are there */

static void remember(const struct mfs_event *e)
{
    recent[nrecent++ % MFS_EVENTS_RECENT] = *e;
}

unsigned mfs_event_recent(struct mfs_event out[MFS_EVENTS_RECENT])
{
    uint64_t n = nrecent < MFS_EVENTS_RECENT ? nrecent : MFS_EVENTS_RECENT;

    for (uint64_t i = 0; i < n; i++)
        out[i] = recent[(nrecent - n + i) % MFS_EVENTS_RECENT];
    return (unsigned)n;
}

static void recall_lines(const char *text, const char *end, bool whole)
{
    const char *stop;

    for (; (stop = memchr(text, '\n', (size_t)(end - text))); text = stop + 1, whole = true) {
        struct mfs_event e = {0};

        if (whole && !mfs_schema_decode(&mfs_event_schema, text, (size_t)(stop - text), &e, NULL))
            remember(&e);
    }
}

void mfs_event_recall(const char *path)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct mfs_buf b;
    struct stat st;
    off_t from;

    if (fd < 0)
        return;
    mfs_buf_init(&b);
    from = !fstat(fd, &st) && st.st_size > RECALLED ? st.st_size - RECALLED : 0;
    if (lseek(fd, from, SEEK_SET) >= 0 && !mfs_file_read_fd(fd, RECALLED, &b) && mfs_buf_len(&b))
        recall_lines(mfs_buf_data(&b), mfs_buf_data(&b) + mfs_buf_len(&b), !from);
    mfs_buf_fini(&b);
    close(fd);
}

/* ---- the file -------------------------------------------------------------------------------- */

static int open_file(const char *path, struct stat *st)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0640), rc;

    if (fd < 0)
        return -errno;
    if (!fstat(fd, st))
        return fd;
    rc = -errno;
    close(fd);
    return rc;
}

/* The file with room for so much more: a full one is renamed, and another one begun. Where that
 * can't be done it grows on. */
static int open_with_room(const char *path, size_t more, struct stat *st)
{
    int fd = open_file(path, st), rc;
    char old[PATH_MAX];

    if (fd < 0 || !bound || !st->st_size || (uint64_t)st->st_size + more <= bound / 2)
        return fd;
    rc = mfs_text_format(old, sizeof old, "%s.1", path);
    if (!rc && rename(path, old))
        rc = -errno;
    if (rc) {
        mfs_warn("event", "%s: it grows beyond its bound: %s", path, strerror(-rc));
        return fd;
    }
    close(fd);
    return open_file(path, st);
}

/* All of it or nothing. */
static int write_line(const char *path, const struct mfs_buf *line)
{
    struct stat before = {0};
    int fd = open_with_room(path, mfs_buf_len(line), &before), rc = fd < 0 ? fd : 0;

    if (!rc) {
        rc = mfs_file_write_all(fd, mfs_buf_data(line), mfs_buf_len(line));
        if (rc && ftruncate(fd, before.st_size))
            mfs_warn("event", "%s: half a line stays: %s", path, strerror(errno));
    }
    if (fd >= 0)
        close(fd);
    return rc;
}

static int append(const char *path, const struct mfs_event *e)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_schema_encode(&mfs_event_schema, e, false, &b);
    if (!rc)
        rc = mfs_buf_append(&b, "\n", 1);
    if (!rc)
        rc = write_line(path, &b);
    mfs_buf_fini(&b);
    return rc;
}

void mfs_event_add(const char *path, const char *who, const char *what, const char *fmt, ...)
{
    struct timespec now = mfs_clock_real();
    char text[MFS_TEXT_MAX];
    struct mfs_event e = {0};
    struct tm tm;
    va_list ap;
    size_t n;
    int rc;

    gmtime_r(&now.tv_sec, &tm);
    n = strftime(e.time, sizeof e.time, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(e.time + n, sizeof e.time - n, ".%03ldZ", now.tv_nsec / 1000000);
    snprintf(e.who, sizeof e.who, "%s", who);
    snprintf(e.what, sizeof e.what, "%s", what);
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    mfs_text_plain(e.text, sizeof e.text, text); /* it may have names, and words of others */
    mfs_info("event", "%s: %s: %s", e.who, e.what, e.text);
    count(e.what);
    remember(&e);
    rc = append(path, &e);
    if (rc)
        mfs_warn("event", "%s: %s", path, strerror(-rc));
}
