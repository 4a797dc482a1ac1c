/* Mounts as the kernel lists them in /proc/self/mountinfo (proc(5)), and removing one whose file
 * system no longer answers. Nothing here looks the mount itself up except mfs_mount_detach, which
 * may hang if the mount does: call it where that is bounded. */
#ifndef MFS_HOST_MOUNTINFO_H
#define MFS_HOST_MOUNTINFO_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

struct mfs_mountinfo {
    unsigned major, minor; /* st_dev; of a FUSE mount, minor names its connection in sysfs */
    unsigned long flags;   /* MS_RDONLY, MS_NOSUID, …: of this mount, not of the file system */
    char fstype[32];
    char source[256];     /* of one of ours: the deployment's name */
    char root[PATH_MAX];  /* the directory in the file system that is mounted; "/": all of it */
    char point[PATH_MAX]; /* where */
};

/* Appends the list's text and a NUL: the list of that process' mount name space, of our own for 0.
 * 0 or a negative errno. */
int mfs_mountinfo_read(pid_t pid, struct mfs_buf *text);

/* Calls each(mount) for all mounts in the text of mountinfo, in the order in which they were made;
 * `m` is valid until the return. Stops at the first return that is not 0, and returns it. Pure. */
int mfs_mountinfo_each(const char *text, int (*each)(void *arg, const struct mfs_mountinfo *m),
                       void *arg);

/* The topmost mount at `path` (absolute, without trailing slash) in the text of mountinfo. 0 or
 * -ENOENT. Pure. */
int mfs_mountinfo_parse(const char *text, const char *path, struct mfs_mountinfo *info);

/* The same from the live list. 0, -ENOENT or another negative errno. */
int mfs_mountinfo_find(const char *path, struct mfs_mountinfo *info);

/* The mount that a path lies in: absolute, without symbolic links, and it need not exist; it is not
 * looked at. 0 or a negative errno. */
int mfs_mountinfo_over(const char *path, struct mfs_mountinfo *info);

/* Is anything mounted on a directory of that device, wherever the device is mounted itself? Pure.
 */
bool mfs_mountinfo_bears(const char *text, dev_t device);

/* Makes every call into a FUSE connection fail at once, whatever its daemon does. 0 or a negative
 * errno (-ENOENT when the connection is gone or sysfs does not show it). */
int mfs_mount_abort(unsigned minor);

/* Takes the mount away from the name space; open files on it stay until closed. 0 (also when there
 * was none) or a negative errno. */
int mfs_mount_detach(const char *path);

#endif
