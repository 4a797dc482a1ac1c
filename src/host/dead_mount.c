#include "host/dead_mount.h"

#include <errno.h>

#include "host/bounded.h"

/* ECONNABORTED is for those who asked while the client went, or whose mount was broken
 * (host/stuck.h). A living client gives neither. */
bool mfs_dead_mount_says(int rc)
{
    return rc == -ENOTCONN || rc == -ECONNABORTED;
}

bool mfs_dead_mount(const char *path, int64_t ns)
{
    return mfs_dead_mount_says(mfs_bounded(mfs_bounded_statfs, path, ns));
}
