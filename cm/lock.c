/* The lock. Its holder may remove the directory, so whoever gets the lock looks whether the path
 * still leads to what was locked. */
#include "cm/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define WAIT (90 * MFS_SEC)
#define STEP (50 * MFS_MSEC)

static bool still_there(const char *dir, int fd)
{
    struct stat a, b;

    return !stat(dir, &a) && !fstat(fd, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* A locked descriptor, -EAGAIN to try again, or another negative errno. */
static int try_lock(const char *dir, bool create)
{
    int fd, rc = create ? mfs_file_mkdirs(dir, 0755) : 0;

    if (rc)
        return rc;
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT && create ? -EAGAIN : -errno;
    rc = flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
    if (!rc && still_there(dir, fd))
        return fd;
    close(fd);
    return rc ? rc : -EAGAIN;
}

int mfs_lock_take(const char *dir, bool create, struct mfs_err *err)
{
    int64_t until = mfs_clock_mono() + WAIT;
    int rc;

    while ((rc = try_lock(dir, create)) == -EAGAIN && mfs_clock_mono() < until)
        mfs_clock_sleep(STEP);
    if (rc == -EAGAIN)
        return mfs_err_set(err, -EBUSY, "another cm start or stop is at work in %s", dir);
    if (rc >= 0 && create && fchmod(rc, 0700)) {
        close(rc);
        rc = -errno;
    }
    return rc >= 0 ? rc : mfs_err_set(err, rc, "%s: %s", dir, strerror(-rc));
}
