/* What may hang of a mount: a worker's work. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "host/timed_call.h"
#include "base/clock.h"
#include "host/mountinfo.h"
#include "base/text.h"
#include "lm/mount/mounter_impl.h"
#include "proto/times.h"

#define PROBE_LIMIT (10 * MFS_SEC)

void mfs_mount_prepare(struct mfs_job *job)
{
    struct mfs_mount_job *j = (struct mfs_mount_job *)job;
    char real[PATH_MAX];

    /* Twice: a dead mount is listed under its real path, which shows only where a path answers. */
    j->rc = mfs_unmount_prepare(j->u.path, j->binds);
    if (!j->rc && !realpath(j->u.path, real))
        j->rc = -errno;
    if (!j->rc && strcmp(real, j->u.path)) {
        j->rc = mfs_text_copy(j->u.path, sizeof j->u.path, real);
        if (!j->rc)
            j->rc = mfs_unmount_prepare(real, j->binds);
    }
}

void mfs_mount_probe(struct mfs_job *job)
{
    struct mfs_mount_job *j = (struct mfs_mount_job *)job;
    struct mfs_mountinfo info;

    j->rc = mfs_timed_call(mfs_timed_stat, j->u.path, PROBE_LIMIT);
    if (!j->rc)
        j->rc = mfs_mountinfo_find(j->u.path, &info);
}

void mfs_mount_end(struct mfs_job *job)
{
    struct mfs_mount_job *j = (struct mfs_mount_job *)job;

    j->rc = mfs_unmount(&j->u, 1, MFS_CLIENT_END_TIME) ? -ETIMEDOUT : 0;
    mfs_bind_mounts_detach(j->binds);
}

void mfs_mount_restore(struct mfs_job *job)
{
    struct mfs_mount_job *j = (struct mfs_mount_job *)job;

    mfs_bind_mounts_restore(j->binds, j->u.path, &j->bound);
}
