/* Reading mountinfo and getting rid of dead mounts; see the header. */
#include "lm/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/text.h"

#define MOUNTINFO     "/proc/self/mountinfo"
#define MOUNTINFO_MAX (16U << 20)

/* Blanks and backslashes in paths are written as \ooo. Copies up to the next blank, decoded. */
static void unescape(const char *from, char *to, size_t n)
{
    size_t len = 0;

    while (*from && *from != ' ' && len + 1 < n) {
        if (from[0] == '\\' && from[1] && from[2] && from[3]) {
            to[len++] = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            to[len++] = *from++;
        }
    }
    to[len] = '\0';
}

/* "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAGS…] - FSTYPE SOURCE SUPEROPTIONS" */
static int parse_line(char *line, char *point, size_t n, struct mfs_mountinfo *info)
{
    int at = 0;
    char *fstype;

    if (sscanf(line, "%*u %*u %u:%u %*s %n", &info->major, &info->minor, &at) != 2 || !at)
        return -EINVAL;
    unescape(line + at, point, n);
    fstype = strstr(line + at, " - ");
    if (!fstype || sscanf(fstype, " - %31s", info->fstype) != 1)
        return -EINVAL;
    return 0;
}

int mfs_mountinfo_parse(const char *text, const char *path, struct mfs_mountinfo *info)
{
    char line[2 * PATH_MAX], point[PATH_MAX];
    struct mfs_mountinfo one;
    int rc = -ENOENT;

    while (*text) {
        size_t len = strcspn(text, "\n");

        if (len < sizeof line) {
            memcpy(line, text, len);
            line[len] = '\0';
            /* Later lines are mounted over earlier ones. */
            if (!parse_line(line, point, sizeof point, &one) && !strcmp(point, path)) {
                *info = one;
                rc = 0;
            }
        }
        text += len + (text[len] == '\n');
    }
    return rc;
}

int mfs_mountinfo_find(const char *path, struct mfs_mountinfo *info)
{
    struct mfs_buf text;
    int rc;

    mfs_buf_init(&text);
    rc = mfs_file_read(MOUNTINFO, MOUNTINFO_MAX, &text);
    if (!rc)
        rc = mfs_buf_append(&text, "", 1);
    if (!rc)
        rc = mfs_mountinfo_parse(mfs_buf_data(&text), path, info);
    mfs_buf_fini(&text);
    return rc;
}

int mfs_mount_abort(unsigned minor)
{
    char path[64];
    int fd, rc;

    snprintf(path, sizeof path, "/sys/fs/fuse/connections/%u/abort", minor);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    rc = mfs_file_write_all(fd, "1", 1);
    close(fd);
    return rc;
}

int mfs_mount_detach(const char *path)
{
    if (!umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW))
        return 0;
    return errno == EINVAL || errno == ENOENT ? 0 : -errno;
}
