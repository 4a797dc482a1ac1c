/* The lock. Its holder may remove the directory, so a command that gets the lock looks whether the
 * path still leads to what was locked. */
#include "cm/state/lock.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/trusted_dir.h"

#define WAIT (90 * MFS_SEC)
#define STEP (50 * MFS_MSEC)

static bool still_there(const char *dir, int fd)
{
    struct stat a, b;

    return !stat(dir, &a) && !fstat(fd, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* A locked descriptor, -EAGAIN to try again, or another negative errno with the reason. */
static int try_lock(struct mfs_paths *p, bool create, struct mfs_err *err)
{
    int fd = mfs_paths_open(p, create ? MFS_TRUSTED_MAKE : 0, err), rc;

    if (fd < 0)
        return fd == -ENOENT && create ? -EAGAIN : fd;
    rc = flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
    if (!rc && still_there(p->dir, fd))
        return fd;
    close(fd);
    return rc && rc != -EAGAIN ? mfs_err_set(err, rc, "%s: %s", p->dir, strerror(-rc)) : -EAGAIN;
}

int mfs_lock_take(struct mfs_paths *p, bool create, struct mfs_err *err)
{
    int64_t until = mfs_clock_mono() + WAIT;
    int rc;

    while ((rc = try_lock(p, create, err)) == -EAGAIN && mfs_clock_mono() < until)
        mfs_clock_sleep(STEP);
    if (rc == -EAGAIN)
        return mfs_err_set(err, -EBUSY, "another cm start or stop is at work in %s", p->dir);
    if (rc < 0 || !create || !fchmod(rc, 0700))
        return rc;
    mfs_err_set(err, -errno, "%s: %s", p->dir, strerror(errno));
    close(rc);
    return err->code;
}
