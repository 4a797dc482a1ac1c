/* The event file, which cm alone writes. What does not fit, as the file system is full, is taken
 * back: the next event is not to be glued to half of one. */
#include "cm/state/events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

const struct mfs_schema mfs_event_schema = {
    "event", sizeof(struct mfs_event),
    (const struct mfs_field[]){{.name = "time", MFS_FIELD(STR, struct mfs_event, time)},
                               {.name = "who", MFS_FIELD(STR, struct mfs_event, who)},
                               {.name = "what", MFS_FIELD(STR, struct mfs_event, what)},
                               {.name = "text", MFS_FIELD(STR, struct mfs_event, text)},
                               {0}}};

/* All of it or nothing. */
static int write_line(const char *path, const struct mfs_buf *line)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0640), rc;
    struct stat before;

    if (fd < 0)
        return -errno;
    rc = fstat(fd, &before) ? -errno : 0;
    if (!rc) {
        rc = mfs_file_write_all(fd, mfs_buf_data(line), mfs_buf_len(line));
        if (rc && ftruncate(fd, before.st_size))
            mfs_warn("event", "%s: half a line stays: %s", path, strerror(errno));
    }
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
    vsnprintf(e.text, sizeof e.text, fmt, ap);
    va_end(ap);
    mfs_info("event", "%s: %s: %s", e.who, e.what, e.text);
    rc = append(path, &e);
    if (rc)
        mfs_warn("event", "%s: %s", path, strerror(-rc));
}
