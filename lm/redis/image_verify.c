#include "lm/redis/image_verify.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/trusted_dir.h"
#include "proto/image_sum.h"

#define CHUNK (1U << 20) /* bytes read at once */

static int sum_file(int fd, struct mfs_image_sum *s, uint64_t *bytes)
{
    char *buf = malloc(CHUNK);
    ssize_t n = buf ? 1 : -ENOMEM;

    *bytes = 0;
    while (n > 0) {
        n = read(fd, buf, CHUNK);
        if (n < 0)
            n = -errno;
        *bytes += n > 0 ? (uint64_t)n : 0;
        if (n > 0 && mfs_image_sum_add(s, buf, (size_t)n))
            n = -EIO;
    }
    free(buf);
    return (int)n;
}

/* No other user can change it between this look and what reads it next. */
static int open_image(const char *path, struct mfs_err *err)
{
    const char *slash = strrchr(path, '/');
    char dir[PATH_MAX];
    int fd, at;

    snprintf(dir, sizeof dir, "%.*s", (int)(slash - path), path);
    at = mfs_trusted_dir_open(dir, 0, NULL, err);
    if (at < 0)
        return at;
    fd = mfs_trusted_open_file(at, slash + 1);
    close(at);
    if (fd == -EPERM || fd == -ELOOP)
        return mfs_err_set(err, fd, "%s: " MFS_TRUSTED_NO_FILE, path);
    return fd < 0 ? mfs_err_set(err, fd, "%s: %s", path, strerror(-fd)) : fd;
}

/* Neither sum is told: they hold keys. */
int mfs_image_verify(const char *path, uint64_t bytes, const char *sum, struct mfs_err *err)
{
    int fd = open_image(path, err), rc = -EINVAL;
    struct mfs_image_sum *s = fd < 0 ? NULL : mfs_image_sum_create(sum);
    char have[MFS_IMAGE_SUM_TEXT] = "";
    uint64_t have_bytes = 0;

    if (fd < 0)
        return fd;
    if (s)
        rc = sum_file(fd, s, &have_bytes);
    if (!rc)
        rc = mfs_image_sum_text(s, have);
    mfs_image_sum_destroy(s);
    close(fd);
    if (rc)
        return mfs_err_set(err, rc, "%s: %s", path, strerror(-rc));
    if (have_bytes != bytes)
        return mfs_err_set(err, -EIO, "%s is damaged: it has %llu bytes, not %llu", path,
                           (unsigned long long)have_bytes, (unsigned long long)bytes);
    if (!mfs_image_sum_equal(have, sum))
        return mfs_err_set(err, -EIO, "%s is damaged, or another one: its checksum is wrong", path);
    return 0;
}
