/* Each look at the path may hang, as it may lead through a mount whose client hangs: so each is
 * made by another process with a time limit (host/timed_call.h), or asks the kernel only. */
#include "fuse/mount/mountpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "host/timed_call.h"
#include "base/clock.h"
#include "host/dead_mount.h"
#include "base/file.h"
#include "base/log.h"
#include "host/mountinfo.h"
#include "base/text.h"

#define LOOK_LIMIT (5 * MFS_SEC)
#define ANSWERS    (120 * MFS_SEC) /* partitions may only be starting */

/* The device of the mount, asking only the kernel. */
static int device_of(const char *path, dev_t *device)
{
    struct statx sx;

    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &sx) < 0)
        return -errno;
    *device = makedev(sx.stx_dev_major, sx.stx_dev_minor);
    return 0;
}

/* By its name alone: a living client need not answer just now. */
static bool is_memefs(const char *path)
{
    struct mfs_mountinfo info;

    return mfs_mountinfo_find(path, &info) == 0 && strcmp(info.fstype, "fuse.memefs") == 0;
}

static int look_for_directory(const void *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return -errno;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

/* A mount there, or one that the path leads through, may hang: all looks are bounded. */
int mfs_mountpoint_prepare(const char *path, struct mfs_err *err)
{
    int rc = mfs_timed_call(mfs_timed_statfs, path, LOOK_LIMIT);

    if (mfs_dead_mount_says(rc)) {
        mfs_info("mount", "%s: taking away the mount of a client that is gone", path);
        if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
            return mfs_err_set(err, -errno, "%s: dead mount: %s", path, strerror(errno));
    }
    if (is_memefs(path))
        return mfs_err_set(err, -EBUSY, "%s: already mounted%s", path,
                           rc == -ETIMEDOUT ? ", by a client that does not answer" : "");
    rc = mfs_timed_call(look_for_directory, path, LOOK_LIMIT);
    if (rc == -ENOENT)
        rc = mfs_file_mkdirs(path, 0755);
    return rc < 0 ? mfs_err_set(err, rc, "%s: %s", path,
                                rc == -ETIMEDOUT ? "does not answer" : strerror(-rc))
                  : 0;
}

bool mfs_mountpoint_covers(const char *path)
{
    return mfs_timed_call(mfs_timed_is_empty, path, LOOK_LIMIT) == -ENOTEMPTY;
}

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC), rc;

    if (fd < 0)
        return -errno;
    rc = mfs_file_write_all(fd, text, strlen(text));
    close(fd);
    return rc;
}

int mfs_mountpoint_tune(const char *path, uint32_t bytes, dev_t *device)
{
    char file[64], text[16];
    int rc;

    /* Answered only after the kernel has taken our reply to its hello, in which it would lower what
     * is set below. By another process: one that is killed while it waits for an answer of its own
     * can't die, as it keeps the connection open that would have to break for that. */
    rc = mfs_timed_call(mfs_timed_statfs, path, ANSWERS);
    if (rc == 0)
        rc = device_of(path, device);
    if (rc < 0)
        return rc;
    snprintf(file, sizeof file, "/sys/class/bdi/%u:%u/read_ahead_kb", major(*device),
             minor(*device));
    snprintf(text, sizeof text, "%u", bytes / 1024);
    if (write_text(file, text) < 0)
        mfs_info("mount", "%s: read-ahead stays at the kernel's default: not permitted", path);
    return 0;
}

int mfs_mountpoint_release(const char *path, dev_t device, bool *later)
{
    dev_t there = 0;
    int rc = device_of(path, &there);

    *later = false;
    if (rc < 0 || there != device)
        return rc;
    if (umount2(path, UMOUNT_NOFOLLOW) == 0)
        return 0;
    if (errno != EBUSY)
        return -errno;
    *later = true;
    return umount2(path, UMOUNT_NOFOLLOW | MNT_DETACH) < 0 ? -errno : 0;
}
