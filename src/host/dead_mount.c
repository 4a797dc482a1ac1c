#include "host/dead_mount.h"

#include <errno.h>

#include "host/timed_call.h"

/* ECONNABORTED is for callers that asked while the client went, or whose mount was broken
 * (host/hung_mount.h). A living client gives neither. */
bool mfs_dead_mount_says(int rc)
{
    return rc == -ENOTCONN || rc == -ECONNABORTED;
}

bool mfs_dead_mount(const char *path, int64_t ns)
{
    return mfs_dead_mount_says(mfs_timed_call(mfs_timed_statfs, path, ns));
}
