/* `cm events`: what has happened, and with --follow what happens until the deployment is stopped.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cm/render.h"
#include "cm/verbs.h"

#define LOOK_STEP  (100 * MFS_MSEC)
#define READ_CHUNK 65536

static int show_line(const char *line, size_t len, bool json, struct mfs_err *err)
{
    struct mfs_event e;
    struct mfs_buf b;
    int rc;

    if (json)
        return fwrite(line, 1, len, stdout) == len && putchar('\n') != EOF ? 0 : -EIO;
    rc = mfs_record_decode(&mfs_event_record, line, len, &e, err);
    if (rc)
        return rc;
    mfs_buf_init(&b);
    rc = mfs_render_event(&e, &b);
    if (!rc && fwrite(mfs_buf_data(&b), 1, mfs_buf_len(&b), stdout) != mfs_buf_len(&b))
        rc = -EIO;
    mfs_buf_fini(&b);
    return rc;
}

/* Shows the whole lines of what the file has now. */
static int show(int fd, struct mfs_buf *b, bool json, struct mfs_err *err)
{
    const char *end;
    ssize_t n;
    char *to;
    int rc;

    for (;;) {
        to = mfs_buf_reserve(b, READ_CHUNK);
        n = to ? read(fd, to, READ_CHUNK) : -1;
        if (n <= 0)
            break;
        mfs_buf_commit(b, (size_t)n);
        while ((end = memchr(mfs_buf_data(b), '\n', mfs_buf_len(b)))) {
            size_t len = (size_t)(end - mfs_buf_data(b));

            rc = show_line(mfs_buf_data(b), len, json, err);
            if (rc)
                return rc;
            mfs_buf_consume(b, len + 1);
        }
    }
    if (n < 0)
        return mfs_err_set(err, to ? -errno : -ENOMEM, "events: %s", strerror(errno));
    return fflush(stdout) ? mfs_err_set(err, -errno, "output: %s", strerror(errno)) : 0;
}

/* The deployment removes the file when it ends. */
static bool removed(int fd)
{
    struct stat st;

    return fstat(fd, &st) || !st.st_nlink;
}

int mfs_cmd_events(struct mfs_verb_call *call, struct mfs_err *err)
{
    bool json = mfs_conf_flag(call->conf, "json"), follow = mfs_conf_flag(call->conf, "follow");
    int fd = open(call->paths.events, O_RDONLY | O_CLOEXEC), rc;
    struct mfs_buf b;

    if (fd < 0)
        return mfs_err_set(err, -errno, "deployment %s has no events: %s: %s", call->paths.name,
                           call->paths.events, strerror(errno));
    mfs_buf_init(&b);
    rc = show(fd, &b, json, err);
    while (!rc && follow) {
        bool last = removed(fd);

        mfs_clock_sleep(LOOK_STEP);
        rc = show(fd, &b, json, err);
        if (last)
            break;
    }
    mfs_buf_fini(&b);
    close(fd);
    return rc;
}
