#include "cm/nodes/failure.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

#define TAIL_BYTES 2048
#define LOG_MOST   (64U << 20)

static void append_tail(const char *path, struct mfs_buf *out)
{
    struct mfs_buf b;
    const char *text, *line;
    size_t len;

    mfs_buf_init(&b);
    if (!mfs_file_read(path, LOG_MOST, &b) && mfs_buf_len(&b)) {
        len = mfs_buf_len(&b) < TAIL_BYTES ? mfs_buf_len(&b) : TAIL_BYTES;
        text = mfs_buf_data(&b) + mfs_buf_len(&b) - len;
        line = len == TAIL_BYTES ? memchr(text, '\n', len) : NULL;
        if (line && line + 1 < text + len) {
            len -= (size_t)(line + 1 - text);
            text = line + 1;
        }
        mfs_buf_printf(out, "--- the end of %s:\n%.*s", path, (int)len, text);
    }
    mfs_buf_fini(&b);
}

void mfs_failure_write(const struct mfs_cm *cm, const struct mfs_node *node, const char *why,
                       bool mounting)
{
    bool here = cm->provider->traits->sees_processes;
    char log[PATH_MAX];
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    mfs_buf_printf(&b, "%s\n", why);
    /* The logs of a node elsewhere are there. */
    if (node && !here && !mfs_paths_start(cm->paths, node->record->id, "log", log))
        append_tail(log, &b);
    if (node && here && !mfs_paths_node(cm->paths, node->record->id, "lm.log", log))
        append_tail(log, &b);
    if (node && here && mounting && !mfs_paths_node(cm->paths, node->record->id, "client.log", log))
        append_tail(log, &b);
    rc = mfs_file_write(cm->paths->failure, mfs_buf_data(&b), mfs_buf_len(&b), 0600);
    if (rc)
        mfs_warn("failure", "%s: %s", cm->paths->failure, strerror(-rc));
    mfs_buf_fini(&b);
}

void mfs_failure_add(const struct mfs_cm *cm, const char *fmt, ...)
{
    int fd = open(cm->paths->failure, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW), rc = 0;
    char line[1024];
    va_list ap;

    if (fd < 0)
        return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    rc = mfs_file_write_all(fd, line, strlen(line));
    if (!rc)
        rc = mfs_file_write_all(fd, "\n", 1);
    if (rc)
        mfs_warn("failure", "%s: %s", cm->paths->failure, strerror(-rc));
    close(fd);
}
