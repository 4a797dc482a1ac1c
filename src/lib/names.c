/* Names: mkdir, mknod, symlink, link, unlink, rmdir, rename. What a kernel checks of the last name
 * ("." and "..", slashes behind it) and of rights is checked here; what only the partitions can
 * know (is there something of that name, is the directory empty, would there be a loop) is theirs.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/placement.h"
#include "lib/lib.h"
#include "lib/rights.h"
#include "lib/tree.h"

/* --- making ----------------------------------------------------------------------------------- */

/* What is to be made; `target` of a symbolic link. */
struct maker {
    mode_t mode;
    dev_t rdev;
    const char *target;
    const struct mfs_attr *link; /* the inode that gets another name */
};

static int make_at(struct memefs *fs, const struct mfs_path_last *last, const struct maker *m)
{
    const struct mfs_cred cred = mfs_lib_cred(fs, &last->dir);
    struct mfs_attr attr = {0};

    if (m->link != NULL) {
        int rc = mfs_vfs_link(fs->vfs, m->link->ino, last->dir.ino, last->name, &attr);

        return rc == -ENOENT ? -ESTALE : rc; /* the inode or the directory has gone by now */
    }
    if (m->target != NULL)
        return mfs_vfs_symlink(fs->vfs, m->target, last->dir.ino, last->name, &cred, &attr);
    return mfs_vfs_mknod(fs->vfs, last->dir.ino, last->name, m->mode, m->rdev, &cred, &attr);
}

/* A file can't be made where only a directory could be, but what is there already counts first. */
static int make_refused(struct memefs *fs, const struct mfs_path_last *last, int refusal)
{
    struct mfs_attr attr = {0};
    int rc = mfs_vfs_lookup(fs->vfs, last->dir.ino, last->name, &attr);

    return rc == 0 ? -EEXIST : rc == -ENOENT ? refusal : rc;
}

static int make_once(struct memefs *fs, struct memefs_file *at, const char *path,
                     const struct maker *m)
{
    struct mfs_path_last last = {0};
    int rc = mfs_lib_last(fs, at, path, &last);

    if (rc < 0)
        return rc;
    if (mfs_lib_is_dots(&last))
        return -EEXIST;
    if (last.slash && !S_ISDIR(m->mode))
        return make_refused(fs, &last, -ENOENT);
    rc = mfs_rights_make(fs->vfs, &fs->ids, &last.dir);
    if (rc == -EACCES)
        return make_refused(fs, &last, rc);
    return rc == 0 ? make_at(fs, &last, m) : rc;
}

static int make(struct memefs *fs, struct memefs_file *at, const char *path, const struct maker *m)
{
    unsigned tries = 0;
    int rc = mfs_lib_enter(fs);

    if (rc < 0)
        return rc;
    do {
        rc = make_once(fs, at, path, m);
    } while (mfs_lib_again(rc, &tries));
    return rc;
}

int mfs_lib_mkdir(struct memefs *fs, struct memefs_file *at, const char *path, mode_t mode)
{
    const struct maker m = {.mode = S_IFDIR | (mode & 01777)};

    return make(fs, at, path, &m);
}

int memefs_mkdirat(struct memefs *fs, struct memefs_file *at, const char *path, mode_t mode)
{
    return (int)mfs_lib_end(mfs_lib_mkdir(fs, at, path, mode), "mkdir", path);
}

/* A character device 0:0 is none, but says that a name is not there (overlayfs' whiteout). */
static bool is_device(mode_t mode, dev_t dev)
{
    return S_ISBLK(mode) || (S_ISCHR(mode) && dev != 0);
}

int memefs_mknodat(struct memefs *fs, struct memefs_file *at, const char *path, mode_t mode,
                   dev_t dev)
{
    const mode_t type = (mode & S_IFMT) ? mode & S_IFMT : S_IFREG;
    const struct maker m = {.mode = type | (mode & 07777), .rdev = dev};
    int rc = mfs_lib_enter(fs);

    if (rc == 0 && (S_ISDIR(mode) || (is_device(mode, dev) && fs->ids.uid != 0)))
        rc = -EPERM;
    else if (rc == 0 && !S_ISREG(m.mode) && !S_ISFIFO(mode) && !S_ISSOCK(mode) && !S_ISCHR(mode) &&
             !S_ISBLK(mode))
        rc = -EINVAL;
    if (rc == 0)
        rc = make(fs, at, path, &m);
    return (int)mfs_lib_end(rc, "mknod", path);
}

int memefs_symlinkat(struct memefs *fs, const char *target, struct memefs_file *at,
                     const char *path)
{
    const struct maker m = {.mode = S_IFLNK, .target = target};
    int rc = target == NULL ? -EINVAL : *target == '\0' ? -ENOENT : make(fs, at, path, &m);

    return (int)mfs_lib_end(rc, "symlink", path);
}

/* A kernel looks at the new name before it asks whether the link may be made. */
static int link_refused(struct memefs *fs, struct memefs_file *at, const char *path, int refusal)
{
    struct mfs_path_last last = {0};
    int rc = mfs_lib_last(fs, at, path, &last);

    if (rc < 0)
        return rc;
    return mfs_lib_is_dots(&last) ? -EEXIST
                                  : make_refused(fs, &last, last.slash ? -ENOENT : refusal);
}

static int link_once(struct memefs *fs, struct memefs_file *from_at, const char *from,
                     struct memefs_file *to_at, const char *to, int at_flags)
{
    int nofollow = at_flags & AT_SYMLINK_FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW;
    struct mfs_attr attr = {0};
    const struct maker m = {.link = &attr};
    int rc = mfs_lib_look(fs, from_at, from, (at_flags & AT_EMPTY_PATH) | nofollow, &attr);

    if (rc < 0)
        return rc;
    rc = S_ISDIR(attr.mode) ? -EPERM : mfs_rights_link(fs->vfs, &fs->ids, &attr);
    return rc < 0 ? link_refused(fs, to_at, to, rc) : make_once(fs, to_at, to, &m);
}

int memefs_linkat(struct memefs *fs, struct memefs_file *from_at, const char *from,
                  struct memefs_file *to_at, const char *to, int at_flags)
{
    unsigned tries = 0;
    int rc = mfs_lib_enter(fs);

    if (rc == 0 &&
        (from == NULL || to == NULL || (at_flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)) != 0))
        rc = -EINVAL;
    if (rc == 0) {
        do {
            rc = link_once(fs, from_at, from, to_at, to, at_flags);
        } while (mfs_lib_again(rc, &tries));
    }
    return (int)mfs_lib_end(rc, "link", to);
}

/* --- removing --------------------------------------------------------------------------------- */

/* Rights to remove the name, or to put another inode in its place. */
static int may_remove(struct memefs *fs, const struct mfs_path_last *last)
{
    struct mfs_attr victim = {0};
    bool look;
    int rc = mfs_rights_remove(fs->vfs, &fs->ids, &last->dir, &look);

    if (rc == -EACCES) {
        rc = make_refused(fs, last, -ENOENT);
        return rc == -EEXIST ? -EACCES : rc;
    }
    if (rc < 0 || !look)
        return rc;
    rc = mfs_vfs_lookup(fs->vfs, last->dir.ino, last->name, &victim);
    return rc == 0 ? mfs_rights_sticky(&fs->ids, &last->dir, &victim) : rc;
}

static int dots_refused(const struct mfs_path_last *last, bool dir)
{
    if (!dir)
        return -EISDIR;
    if (last->name[0] == '\0')
        return -EBUSY;
    return last->name[1] == '.' ? -ENOTEMPTY : -EINVAL;
}

static int slash_refused(struct memefs *fs, const struct mfs_path_last *last)
{
    struct mfs_attr attr = {0};
    int rc = mfs_vfs_lookup(fs->vfs, last->dir.ino, last->name, &attr);

    if (rc < 0)
        return rc;
    return S_ISDIR(attr.mode) ? -EISDIR : -ENOTDIR;
}

static int remove_once(struct memefs *fs, struct memefs_file *at, const char *path, bool dir)
{
    struct mfs_path_last last = {0};
    int rc = mfs_lib_last(fs, at, path, &last);

    if (rc < 0)
        return rc;
    if (mfs_lib_is_dots(&last))
        return dots_refused(&last, dir);
    if (last.slash && !dir)
        return slash_refused(fs, &last);
    rc = may_remove(fs, &last);
    if (rc < 0)
        return rc;
    return dir ? mfs_vfs_rmdir(fs->vfs, last.dir.ino, last.name)
               : mfs_vfs_unlink(fs->vfs, last.dir.ino, last.name);
}

int memefs_unlinkat(struct memefs *fs, struct memefs_file *at, const char *path, int at_flags)
{
    bool dir = at_flags & AT_REMOVEDIR;
    unsigned tries = 0;
    int rc = mfs_lib_enter(fs);

    if (rc == 0 && (at_flags & ~AT_REMOVEDIR) != 0)
        rc = -EINVAL;
    if (rc == 0) {
        do {
            rc = remove_once(fs, at, path, dir);
        } while (mfs_lib_again(rc, &tries));
    }
    return (int)mfs_lib_end(rc, dir ? "rmdir" : "unlink", path);
}

/* --- moving ----------------------------------------------------------------------------------- */

static int look_up(struct memefs *fs, const struct mfs_path_last *last, struct mfs_attr *attr)
{
    return mfs_vfs_lookup(fs->vfs, last->dir.ino, last->name, attr);
}

/* Of what is moved: slashes are for directories, and ".." in one that gets another parent is a
 * change of it. */
static int may_move(struct memefs *fs, const struct mfs_path_last *from,
                    const struct mfs_path_last *to, unsigned flags)
{
    bool exchange = flags & RENAME_EXCHANGE;
    bool slash = from->slash || (to->slash && !exchange);
    bool moves = from->dir.ino != to->dir.ino && fs->ids.uid != 0;
    struct mfs_attr attr = {0};
    int rc;

    if (slash || moves) {
        rc = look_up(fs, from, &attr);
        if (rc == 0 && slash && !S_ISDIR(attr.mode))
            rc = -ENOTDIR;
        if (rc == 0 && moves && S_ISDIR(attr.mode))
            rc = mfs_vfs_access(fs->vfs, &attr, &fs->ids, W_OK);
        if (rc < 0)
            return rc;
    }
    if (!exchange || !(to->slash || moves))
        return 0;
    rc = look_up(fs, to, &attr);
    if (rc == 0 && to->slash && !S_ISDIR(attr.mode))
        rc = -ENOTDIR;
    if (rc == 0 && moves && S_ISDIR(attr.mode))
        rc = mfs_vfs_access(fs->vfs, &attr, &fs->ids, W_OK);
    return rc;
}

static int may_replace(struct memefs *fs, const struct mfs_path_last *to)
{
    int rc = may_remove(fs, to);

    return rc == -ENOENT ? mfs_rights_make(fs->vfs, &fs->ids, &to->dir) : rc;
}

/* Is the directory `dir` at or below `top`? 1, 0 or -errno. */
static int is_below(struct memefs *fs, uint64_t dir, uint64_t top)
{
    struct mfs_attr attr = {0};
    int rc = 0;

    while (dir != top && dir != MFS_ROOT_INO && rc == 0) {
        rc = mfs_vfs_getattr(fs->vfs, dir, &attr);
        dir = attr.parent;
    }
    return rc < 0 ? rc : dir == top;
}

/* A kernel looks at both names, and for loops, before it asks for rights and for the rename, and
 * has nothing to do for two names of one inode: of several reasons to refuse it what it tells is
 * the first in this order. */
static int refusal(struct memefs *fs, const struct mfs_path_last *from,
                   const struct mfs_path_last *to, unsigned flags, int rc)
{
    struct mfs_attr source = {0}, target = {0};
    int source_rc = look_up(fs, from, &source), target_rc = look_up(fs, to, &target);

    if (source_rc < 0)
        return source_rc;
    if (target_rc == -ENOENT && (flags & RENAME_EXCHANGE))
        return -ENOENT;
    if (target_rc == 0 && (flags & RENAME_NOREPLACE))
        return -EEXIST;
    if (!S_ISDIR(source.mode) && (from->slash || (to->slash && !(flags & RENAME_EXCHANGE))))
        return -ENOTDIR;
    if (S_ISDIR(source.mode) && is_below(fs, to->dir.ino, source.ino) == 1)
        return -EINVAL;
    if (target_rc == 0 && S_ISDIR(target.mode) && is_below(fs, from->dir.ino, target.ino) == 1)
        return flags & RENAME_EXCHANGE ? -EINVAL : -ENOTEMPTY;
    return target_rc == 0 && source.ino == target.ino ? 0 : rc;
}

static bool is_refusal(int rc)
{
    return rc == -EINVAL || rc == -EISDIR || rc == -ENOTDIR || rc == -ENOTEMPTY || rc == -EPERM ||
           rc == -EACCES;
}

static int rename_once(struct memefs *fs, struct memefs_file *from_at, const char *from_path,
                       struct memefs_file *to_at, const char *to_path, unsigned flags)
{
    struct mfs_path_last from = {0}, to = {0};
    int rc = mfs_lib_last(fs, from_at, from_path, &from);

    if (rc == 0)
        rc = mfs_lib_last(fs, to_at, to_path, &to);
    if (rc < 0)
        return rc;
    if (mfs_lib_is_dots(&from))
        return -EBUSY;
    if (mfs_lib_is_dots(&to))
        return flags & RENAME_NOREPLACE ? -EEXIST : -EBUSY;
    rc = may_remove(fs, &from);
    if (rc == 0)
        rc = may_replace(fs, &to);
    if (rc == 0)
        rc = may_move(fs, &from, &to, flags);
    if (rc == 0)
        rc =
            mfs_vfs_rename(fs->vfs, from.dir.ino, from.name, to.dir.ino, to.name, flags, &fs->cred);
    return is_refusal(rc) ? refusal(fs, &from, &to, flags, rc) : rc;
}

static int check_rename(unsigned flags)
{
    const unsigned known = RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT;

    if ((flags & ~known) != 0 ||
        ((flags & RENAME_EXCHANGE) && (flags & (RENAME_NOREPLACE | RENAME_WHITEOUT))))
        return -EINVAL;
    return 0;
}

int memefs_renameat(struct memefs *fs, struct memefs_file *from_at, const char *from,
                    struct memefs_file *to_at, const char *to, unsigned flags)
{
    unsigned tries = 0;
    int rc = mfs_lib_enter(fs);

    if (rc == 0)
        rc = check_rename(flags);
    if (rc == 0) {
        do {
            rc = rename_once(fs, from_at, from, to_at, to, flags);
        } while (mfs_lib_again(rc, &tries));
    }
    return (int)mfs_lib_end(rc, "rename", from);
}
