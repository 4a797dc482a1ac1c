#include "host/hung_mount.h"

#include <errno.h>
#include <string.h>

#include "host/timed_call.h"
#include "base/clock.h"
#include "base/log.h"
#include "host/mountinfo.h"

#define ANSWER_LIMIT (1 * MFS_SEC)

bool mfs_hung_mount_abort(const struct mfs_proc *client, const char *path)
{
    struct mfs_mountinfo info;
    int rc;

    if (!mfs_proc_dying(client) || *path != '/' || mfs_mountinfo_find(path, &info) ||
        strncmp(info.fstype, "fuse", 4) != 0)
        return false;
    if (mfs_timed_call(mfs_timed_statfs, path, ANSWER_LIMIT) != -ETIMEDOUT ||
        !mfs_proc_dying(client))
        return false;
    mfs_warn("mount", "%s: client %d was killed while it waited for its own mount: breaking it",
             path, (int)client->pid);
    rc = mfs_mount_abort(info.minor);
    if (rc)
        mfs_error("mount", "%s: cannot break its connection: %s; umount -f does it", path,
                  strerror(-rc));
    return !rc;
}
