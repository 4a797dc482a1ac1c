#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "cluster/placement.h"
#include "stage/impl.h"

#define TRIES     64 /* for each partition there is: chance finds one long before */
#define LOCK_WAIT MFS_SEC
#define LOCK_LOOK (50 * MFS_MSEC)

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

bool mfs_stage_is_temporary(const char *name)
{
    return !strncmp(name, MFS_STAGE_TEMPORARY, strlen(MFS_STAGE_TEMPORARY));
}

/* ---- one such call at a time ----------------------------------------------------------------- */

static void name_of_lock(const struct mfs_stage *s, const char *what,
                         char out[MFS_STAGE_TEMPORARY_MAX])
{
    snprintf(out, MFS_STAGE_TEMPORARY_MAX, MFS_STAGE_TEMPORARY "%016" PRIx64 ".%s", s->id, what);
}

/* Is the file that was locked still the one that others find? */
bool mfs_stage_is_there(int target, const char *name, int fd)
{
    struct stat ours, theirs;

    return !fstat(fd, &ours) && !fstatat(target, name, &theirs, AT_SYMLINK_NOFOLLOW) &&
           ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

bool mfs_stage_is_own(const struct mfs_stage *s, int fd)
{
    struct stat st;

    return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == s->self.st_uid &&
           st.st_nlink == 1;
}

/* A descriptor of the locked file; -EALREADY, or another negative errno. Where files can't be
 * locked it must be nobody else's matter. */
static int lock_file(const struct mfs_stage *s, int target, const char *name, int how)
{
    for (;;) {
        int fd = openat(target, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600), rc = 0;

        if (fd < 0)
            return -errno;
        if (flock(fd, how | LOCK_NB) < 0)
            rc = errno == EWOULDBLOCK ? -EALREADY : s->plan->shared ? -errno : 0;
        if (!rc && mfs_stage_is_there(target, name, fd))
            return fd;
        close(fd);
        if (rc)
            return rc;
    }
}

/* Of a process that was killed just now the mount may not have heard yet that its lock is free. */
static int lock_soon(const struct mfs_stage *s, int target, const char *name, int how)
{
    int64_t end = mfs_clock_mono() + LOCK_WAIT;
    int fd = lock_file(s, target, name, how);

    while (fd == -EALREADY && mfs_clock_mono() < end && !*s->plan->stop) {
        mfs_clock_sleep(LOCK_LOOK);
        fd = lock_file(s, target, name, how);
    }
    return fd;
}

int mfs_stage_lock(struct mfs_stage *s, int target, struct mfs_err *err)
{
    char name[MFS_STAGE_TEMPORARY_MAX];
    int fd;

    name_of_lock(s, "lock", name);
    fd = lock_soon(s, target, name, s->plan->shared ? LOCK_SH : LOCK_EX);
    if (fd == -EALREADY)
        return mfs_err_set(err, -EBUSY, "%s: the same is being staged there already%s",
                           s->plan->target,
                           s->plan->shared ? ", without --shared" : " (--shared takes part in it)");
    return fd < 0 ? mfs_err_set(err, fd, "%s: can't write into it, or lock there: %s",
                                s->plan->target, strerror(-fd))
                  : fd;
}

/* The last one removes it. */
static void unlock(const struct mfs_stage *s, int target, const char *what, int fd)
{
    char name[MFS_STAGE_TEMPORARY_MAX];

    name_of_lock(s, what, name);
    if (s->plan->shared)
        flock(fd, LOCK_UN);
    if (!s->plan->shared || (!flock(fd, LOCK_EX | LOCK_NB) && mfs_stage_is_there(target, name, fd)))
        unlinkat(target, name, 0);
    close(fd);
}

void mfs_stage_unlock(const struct mfs_stage *s, int target, int lock)
{
    if (s->leader >= 0)
        unlock(s, target, "leader", s->leader);
    unlock(s, target, "lock", lock);
}

/* ---- several processes ----------------------------------------------------------------------- */

bool mfs_stage_leads(struct mfs_stage *s)
{
    char name[MFS_STAGE_TEMPORARY_MAX];
    bool leads;

    name_of_lock(s, "leader", name);
    pthread_mutex_lock(&s->mutex);
    if (s->leader < 0)
        s->leader = lock_file(s, s->target, name, LOCK_EX);
    leads = s->leader >= 0;
    pthread_mutex_unlock(&s->mutex);
    return leads;
}

int mfs_stage_claim(int dir, const char *name, int fd)
{
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? -EALREADY : -errno;
    return mfs_stage_is_there(dir, name, fd) ? 0 : -EALREADY;
}
