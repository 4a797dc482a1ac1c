/* Attributes: stat, access, chmod, chown, utimens, truncate, statfs. For what only an owner may do
 * the rights are looked at first, and the change is made only while the inode is still that
 * owner's (struct mfs_owned). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/lib.h"
#include "lib/rights.h"

/* Both as a mount tells them (fuse/ops). */
#define STATFS_BLOCK 4096U

#define OWNED_TRIES 100 /* in each of which another call has changed the owner or the group */

#define AT_FLAGS (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)

void mfs_lib_stat(const struct memefs *fs, const struct mfs_attr *attr, struct stat *st)
{
    *st = mfs_attr_stat(attr);
    st->st_dev = fs->dev;
}

int mfs_lib_attr(struct memefs_file *file, struct mfs_attr *attr)
{
    int rc = mfs_vfs_getattr(file->fs->vfs, file->attr.ino, attr);

    if (rc != -ESTALE)
        return rc;
    *attr = file->attr; /* removed: as Linux tells of it */
    attr->nlink = 0;
    return 0;
}

/* --- looking ---------------------------------------------------------------------------------- */

static int stat_at(struct memefs *fs, struct memefs_file *at, const char *path, struct stat *st,
                   int at_flags)
{
    struct mfs_attr attr = {0};
    int rc = mfs_lib_enter(fs);

    if (rc == 0 && (st == NULL || (at_flags & ~(AT_FLAGS | AT_NO_AUTOMOUNT)) != 0))
        rc = -EINVAL;
    if (rc == 0)
        rc = mfs_lib_look(fs, at, path, at_flags, &attr);
    if (rc == 0)
        mfs_lib_stat(fs, &attr, st);
    return rc;
}

int memefs_fstatat(struct memefs *fs, struct memefs_file *at, const char *path, struct stat *st,
                   int at_flags)
{
    return (int)mfs_lib_end(stat_at(fs, at, path, st, at_flags), "stat", path);
}

int memefs_fstat(struct memefs_file *file, struct stat *st)
{
    struct mfs_attr attr = {0};
    int rc = mfs_lib_enter_file(file);

    if (rc == 0 && st == NULL)
        rc = -EINVAL;
    if (rc == 0)
        rc = mfs_lib_attr(file, &attr);
    if (rc == 0)
        mfs_lib_stat(file->fs, &attr, st);
    return (int)mfs_lib_end(rc, "fstat", NULL);
}

int memefs_faccessat(struct memefs *fs, struct memefs_file *at, const char *path, int mode,
                     int at_flags)
{
    struct mfs_attr attr = {0};
    unsigned tries = 0;
    int rc = mfs_lib_enter(fs);

    /* The ids of a connection are the effective ones, so that AT_EACCESS changes nothing. */
    if (rc == 0 &&
        ((mode & ~(R_OK | W_OK | X_OK)) != 0 || (at_flags & ~(AT_FLAGS | AT_EACCESS)) != 0))
        rc = -EINVAL;
    if (rc == 0) {
        do {
            rc = mfs_lib_look(fs, at, path, at_flags & ~AT_EACCESS, &attr);
            if (rc == 0 && mode != F_OK)
                rc = mfs_vfs_access(fs->vfs, &attr, &fs->ids, (unsigned)mode);
        } while (mfs_lib_again(rc, &tries));
    }
    return (int)mfs_lib_end(rc, "access", path);
}

int memefs_statfs(struct memefs *fs, struct statvfs *st)
{
    struct mfs_meta_space space = {0};
    uint64_t left;
    int rc = mfs_lib_enter(fs);

    if (rc == 0 && st == NULL)
        rc = -EINVAL;
    if (rc == 0)
        rc = mfs_vfs_statfs(fs->vfs, &space);
    if (rc < 0)
        return (int)mfs_lib_end(rc, "statfs", NULL);
    left = space.total > space.used ? space.total - space.used : 0;
    *st = (struct statvfs){
        .f_bsize = STATFS_BLOCK, .f_frsize = STATFS_BLOCK, .f_namemax = MFS_NAME_LEN_MAX};
    st->f_blocks = space.total / STATFS_BLOCK;
    st->f_bfree = st->f_bavail = left / STATFS_BLOCK;
    st->f_ffree = st->f_favail = left / 512;
    st->f_files = space.files + st->f_ffree;
    return 0;
}

/* --- changing --------------------------------------------------------------------------------- */

/* A change that is tried again while another call changes who owns the inode. */
struct change {
    uint32_t mask; /* MFS_SET_* */
    struct mfs_attr attr;
    /* Rights, of the attributes of now; may narrow attr. */
    int (*may)(struct memefs *fs, const struct mfs_attr *now, struct change *c);
    bool of_owner; /* only while the owner is the same */
};

static int change_once(struct memefs *fs, const struct mfs_attr *now, struct change c)
{
    struct mfs_owned owned = {.user = c.of_owner, .uid = now->uid};
    int rc = c.may(fs, now, &c);

    if (rc < 0)
        return rc;
    if ((c.mask & MFS_SET_MODE) && fs->ids.uid != 0 && (c.attr.mode & S_ISGID)) {
        owned.group = true;
        owned.gid = now->gid;
    }
    rc = mfs_vfs_setattr(fs->vfs, now->ino, c.mask, &c.attr, owned.user ? &owned : NULL);
    return rc == -EPERM ? -ECANCELED : rc; /* of another owner by now: look again */
}

static int look_and_change(struct memefs *fs, struct memefs_file *at, const char *path,
                           int at_flags, const struct change *c)
{
    struct mfs_attr now = {0};
    int rc = mfs_lib_look(fs, at, path, at_flags, &now);

    if (rc == 0)
        rc = change_once(fs, &now, *c);
    for (int i = 0; i < OWNED_TRIES && rc == -ECANCELED; i++) {
        rc = mfs_vfs_getattr(fs->vfs, now.ino, &now);
        if (rc == 0)
            rc = change_once(fs, &now, *c);
    }
    return rc == -ECANCELED ? -EPERM : rc;
}

static int change(struct memefs *fs, struct memefs_file *at, const char *path, int at_flags,
                  const struct change *c)
{
    unsigned tries = 0;
    int rc;

    do {
        rc = look_and_change(fs, at, path, at_flags, c);
    } while (mfs_lib_again(rc, &tries));
    return rc;
}

static int may_chmod(struct memefs *fs, const struct mfs_attr *now, struct change *c)
{
    if (!mfs_rights_owns(&fs->ids, now))
        return -EPERM;
    if (S_ISLNK(now->mode))
        return -EOPNOTSUPP;
    if (fs->ids.uid != 0 && !mfs_ids_in_group(&fs->ids, now->gid))
        c->attr.mode &= ~(uint32_t)S_ISGID;
    return 0;
}

int memefs_fchmodat(struct memefs *fs, struct memefs_file *at, const char *path, mode_t mode,
                    int at_flags)
{
    const struct change c = {
        .mask = MFS_SET_MODE, .attr = {.mode = mode & 07777}, .may = may_chmod, .of_owner = true};
    int rc = mfs_lib_enter(fs);

    if (rc == 0 && (at_flags & ~AT_FLAGS) != 0)
        rc = -EINVAL;
    if (rc == 0)
        rc = change(fs, at, path, at_flags, &c);
    return (int)mfs_lib_end(rc, "chmod", path);
}

static int may_chown(struct memefs *fs, const struct mfs_attr *now, struct change *c)
{
    return mfs_rights_chown(&fs->ids, now, c->mask & MFS_SET_UID ? c->attr.uid : (uid_t)-1,
                            c->mask & MFS_SET_GID ? c->attr.gid : (gid_t)-1);
}

int memefs_fchownat(struct memefs *fs, struct memefs_file *at, const char *path, uid_t uid,
                    gid_t gid, int at_flags)
{
    struct change c = {.attr = {.uid = uid, .gid = gid}, .may = may_chown, .of_owner = true};
    struct mfs_attr attr = {0};
    int rc = mfs_lib_enter(fs);

    c.mask |= uid != (uid_t)-1 ? MFS_SET_UID : 0;
    c.mask |= gid != (gid_t)-1 ? MFS_SET_GID : 0;
    if (rc == 0 && (at_flags & ~AT_FLAGS) != 0)
        rc = -EINVAL;
    if (rc == 0 && c.mask == 0)
        rc = mfs_lib_look(fs, at, path, at_flags, &attr);
    else if (rc == 0)
        rc = change(fs, at, path, at_flags, &c);
    return (int)mfs_lib_end(rc, "chown", path);
}

/* Who may write a file may say that it was used now. */
static int may_touch(struct memefs *fs, const struct mfs_attr *now, struct change *c)
{
    if (mfs_rights_owns(&fs->ids, now))
        return 0;
    return c->of_owner ? -EPERM : mfs_vfs_access(fs->vfs, now, &fs->ids, W_OK);
}

static int set_time(const struct timespec *given, uint32_t bit, uint32_t *mask,
                    struct timespec *time)
{
    if (given->tv_nsec == UTIME_OMIT)
        return 0;
    *mask |= bit;
    if (given->tv_nsec == UTIME_NOW)
        return 0;
    if (given->tv_nsec < 0 || given->tv_nsec >= 1000000000)
        return -EINVAL;
    *time = *given;
    return 0;
}

static int set_times(const struct timespec times[2], struct change *c)
{
    struct timespec now = mfs_clock_real();
    int rc;

    c->attr.atime = c->attr.mtime = now;
    c->mask = MFS_SET_ATIME | MFS_SET_MTIME;
    if (times == NULL)
        return 0;
    c->mask = 0;
    rc = set_time(&times[0], MFS_SET_ATIME, &c->mask, &c->attr.atime);
    if (rc == 0)
        rc = set_time(&times[1], MFS_SET_MTIME, &c->mask, &c->attr.mtime);
    c->of_owner = times[0].tv_nsec != UTIME_NOW || times[1].tv_nsec != UTIME_NOW;
    return rc;
}

int memefs_utimensat(struct memefs *fs, struct memefs_file *at, const char *path,
                     const struct timespec times[2], int at_flags)
{
    struct change c = {.may = may_touch};
    struct mfs_attr attr = {0};
    int rc = mfs_lib_enter(fs);

    if (rc == 0 && (at_flags & ~AT_FLAGS) != 0)
        rc = -EINVAL;
    if (rc == 0)
        rc = set_times(times, &c);
    if (rc == 0 && c.mask == 0)
        rc = mfs_lib_look(fs, at, path, at_flags, &attr);
    else if (rc == 0)
        rc = change(fs, at, path, at_flags, &c);
    return (int)mfs_lib_end(rc, "utimens", path);
}

static int set_size(struct memefs *fs, const struct mfs_attr *now, off_t size)
{
    struct mfs_attr attr = {.size = (uint64_t)size};

    if (S_ISDIR(now->mode))
        return -EISDIR;
    if (!S_ISREG(now->mode))
        return -EINVAL;
    return mfs_vfs_setattr(fs->vfs, now->ino, MFS_VFS_SET_SIZE | fs->cred.drop, &attr, NULL);
}

static int truncate_once(struct memefs *fs, const char *path, off_t size)
{
    struct mfs_attr now = {0};
    int rc = mfs_lib_look(fs, NULL, path, 0, &now);

    if (rc == 0 && !S_ISDIR(now.mode))
        rc = mfs_vfs_access(fs->vfs, &now, &fs->ids, W_OK);
    return rc == 0 ? set_size(fs, &now, size) : rc;
}

int memefs_truncate(struct memefs *fs, const char *path, off_t size)
{
    unsigned tries = 0;
    int rc = mfs_lib_enter(fs);

    if (rc == 0 && size < 0)
        rc = -EINVAL;
    if (rc == 0) {
        do {
            rc = truncate_once(fs, path, size);
        } while (mfs_lib_again(rc, &tries));
    }
    return (int)mfs_lib_end(rc, "truncate", path);
}

int memefs_ftruncate(struct memefs_file *file, off_t size)
{
    int rc = mfs_lib_enter_file(file);

    if (rc == 0 && (file->flags & O_PATH))
        rc = -EBADF;
    else if (rc == 0 && (size < 0 || file->open == NULL || (file->flags & O_ACCMODE) == O_RDONLY))
        rc = -EINVAL;
    if (rc == 0)
        rc = set_size(file->fs, &file->attr, size);
    return (int)mfs_lib_end(rc, "ftruncate", NULL);
}
