#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/text.h"
#include "cluster/placement.h"
#include "stage/impl.h"

#define TRIES 64 /* for each partition there is: chance finds one long before */

void mfs_stage_temporary(const struct mfs_stage_dir *d, const char *name,
                         char out[MFS_STAGE_TEMPORARY_MAX])
{
    uint32_t nparts = d->stage->nparts, part;
    uint64_t hash = mfs_hash64(name, strlen(name), d->stage->id);

    part = nparts ? mfs_placement_entry(d->to_ino, name, strlen(name), nparts) : 0;
    for (uint32_t i = 0; i <= TRIES * nparts; i++) {
        int len =
            snprintf(out, MFS_STAGE_TEMPORARY_MAX, MFS_STAGE_TEMPORARY "%016" PRIx64 ".%016" PRIx64,
                     d->stage->id, hash + i);

        if (!nparts || mfs_placement_entry(d->to_ino, out, (size_t)len, nparts) == part)
            return;
    }
}

/* ---- one such call at a time ----------------------------------------------------------------- */

static void name_of_lock(const struct mfs_stage *s, char out[MFS_STAGE_TEMPORARY_MAX])
{
    snprintf(out, MFS_STAGE_TEMPORARY_MAX, MFS_STAGE_TEMPORARY "%016" PRIx64 ".lock", s->id);
}

/* Is the file that was locked still the one that others find? */
static bool is_there(int target, const char *name, int fd)
{
    struct stat ours, theirs;

    return !fstat(fd, &ours) && !fstatat(target, name, &theirs, AT_SYMLINK_NOFOLLOW) &&
           ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

int mfs_stage_lock(struct mfs_stage *s, int target, struct mfs_err *err)
{
    char name[MFS_STAGE_TEMPORARY_MAX];
    int fd;

    name_of_lock(s, name);
    for (;;) {
        fd = openat(target, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
            return mfs_err_set(err, -errno, "%s: can't write into it: %s", s->plan->target,
                               strerror(errno));
        if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
            close(fd);
            return mfs_err_set(err, -EBUSY, "%s: the same is being staged there already",
                               s->plan->target);
        } /* where files can't be locked, nothing is said */
        if (is_there(target, name, fd))
            return fd;
        close(fd);
    }
}

void mfs_stage_unlock(const struct mfs_stage *s, int target, int lock)
{
    char name[MFS_STAGE_TEMPORARY_MAX];

    name_of_lock(s, name);
    unlinkat(target, name, 0);
    close(lock);
}
