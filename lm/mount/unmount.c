/* Ending clients.
 *
 * The order matters: a client asked nicely writes back what it holds. One that does not end (its
 * data can't be written, its partitions hang) is first cut off from the kernel: killing it alone
 * would do, as that closes its /dev/fuse, but not while it is in an uninterruptible wait. */
#include "lm/mount/unmount.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "host/timed_call.h"
#include "base/clock.h"
#include "host/dead_mount.h"
#include "base/file.h"
#include "base/log.h"
#include "host/mountinfo.h"
#include "host/hung_mount.h"

#define AREA       "mount"
#define POLL_STEP  (10 * MFS_MSEC)
#define KILL_WAIT  (2 * MFS_SEC)
#define CALL_LIMIT (1 * MFS_SEC)
#define STAT_LIMIT (5 * MFS_SEC)

static bool is_fuse(const struct mfs_mountinfo *info)
{
    return !strncmp(info->fstype, "fuse", 4);
}

static size_t wait_all(const struct mfs_unmount *u, size_t n, int64_t ns)
{
    int64_t until = mfs_clock_mono() + ns;
    size_t alive;

    for (;;) {
        alive = 0;
        for (size_t i = 0; i < n; i++)
            alive += mfs_proc_alive(&u[i].client);
        if (!alive || mfs_clock_mono() >= until)
            return alive;
        mfs_clock_sleep(POLL_STEP);
    }
}

/* The FUSE mount on a path; minor 0 when there is none. */
static unsigned mount_minor(const char *path)
{
    struct mfs_mountinfo info;

    return *path && !mfs_mountinfo_find(path, &info) && is_fuse(&info) ? info.minor : 0;
}

static void force(struct mfs_unmount *u)
{
    unsigned minor = mount_minor(u->path);

    u->forced = true;
    mfs_warn(AREA, "%s: client %d does not end, killing it", u->path, (int)u->client.pid);
    if (minor)
        mfs_mount_abort(minor);
    mfs_proc_kill(&u->client, SIGKILL);
}

/* Notes its binds before, where binds is not NULL. */
static int detach_dead(const char *path, struct mfs_bind_mounts *binds)
{
    int rc;

    if (!mount_minor(path) || !mfs_dead_mount(path, CALL_LIMIT))
        return 0; /* another's live mount stays */
    rc = binds ? mfs_bind_mounts_note(binds, path) : 0;
    if (rc)
        mfs_warn(AREA, "%s: can't note its binds: %s", path, strerror(-rc));
    rc = mfs_timed_call(mfs_timed_detach, path, CALL_LIMIT);
    if (rc)
        mfs_error(AREA, "%s: can't detach the dead mount: %s", path, strerror(-rc));
    else
        mfs_info(AREA, "%s: dead mount detached", path);
    return rc;
}

int mfs_unmount_dead(const char *path)
{
    return detach_dead(path, NULL);
}

/* Binds of all the mounts, while they are there. NULL when there is no memory for that. */
static struct mfs_bind_mounts *note_binds(const struct mfs_unmount *u, size_t n)
{
    struct mfs_bind_mounts *binds = mfs_bind_mounts_create();

    for (size_t i = 0; binds && i < n; i++)
        mfs_bind_mounts_note(binds, u[i].path);
    return binds;
}

size_t mfs_unmount(struct mfs_unmount *u, size_t n, int64_t grace)
{
    struct mfs_bind_mounts *binds = note_binds(u, n);
    size_t left = 0;

    for (size_t i = 0; i < n; i++)
        mfs_proc_kill(&u[i].client, SIGTERM);
    if (wait_all(u, n, grace)) {
        for (size_t i = 0; i < n; i++) {
            if (mfs_proc_alive(&u[i].client))
                force(&u[i]);
        }
        wait_all(u, n, KILL_WAIT);
    }
    for (size_t i = 0; i < n; i++) {
        int rc;

        mfs_hung_mount_abort(&u[i].client, u[i].path);
        rc = mfs_unmount_dead(u[i].path);
        u[i].gone = !rc && !mfs_proc_alive(&u[i].client);
        left += !u[i].gone;
    }
    if (binds)
        mfs_bind_mounts_detach(binds);
    mfs_bind_mounts_destroy(binds);
    return left;
}

int mfs_unmount_prepare(const char *path, struct mfs_bind_mounts *binds)
{
    struct mfs_mountinfo info;
    int rc = detach_dead(path, binds);

    if (rc)
        return rc;
    if (!mfs_mountinfo_find(path, &info) && is_fuse(&info))
        return -EBUSY;
    rc = mfs_timed_call(mfs_timed_stat, path, STAT_LIMIT);
    return rc == -ENOENT ? mfs_file_mkdirs(path, 0755) : rc;
}
