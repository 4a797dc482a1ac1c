/* Opening and closing.
 *
 * To create, the name is created or found in one step at its home; a file that was there already is
 * open then if it is the caller's own (vfs/vfs.h). Anything else is decided by a look at it:
 * rights, symbolic links, what is no plain file. Between that look and the open another client may
 * have changed what the name is: then it is looked at again. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <utlist.h>

#include "cluster/placement.h"
#include "lib/lib.h"
#include "lib/rights.h"

static void join(struct memefs *fs, struct memefs_file *f)
{
    pthread_mutex_lock(&fs->lock);
    DL_APPEND(fs->files, f);
    pthread_mutex_unlock(&fs->lock);
}

static int file_new(struct memefs *fs, struct mfs_file *open, const struct mfs_attr *attr,
                    int flags, struct memefs_file **file)
{
    struct memefs_file *f = calloc(1, sizeof *f);

    if (f == NULL) {
        if (open != NULL)
            mfs_vfs_release(open);
        return -ENOMEM;
    }
    f->fs = fs;
    f->open = open;
    f->attr = *attr;
    f->flags = flags;
    f->owner = atomic_fetch_add(&fs->owner, 1);
    pthread_mutex_init(&f->lock, NULL);
    if (open != NULL)
        mfs_vfs_bypasses(open); /* no kernel keeps pages of it */
    join(fs, f);
    *file = f;
    return 0;
}

static int vfs_flags(const struct memefs *fs, int flags)
{
    flags &= O_ACCMODE | O_APPEND | O_TRUNC | O_NOATIME;
    return fs->ids.uid == 0 ? flags | MFS_VFS_MAY_KEEP : flags;
}

/* --- what is there already -------------------------------------------------------------------- */

static int check_kind(const struct mfs_attr *attr, int flags)
{
    bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_TRUNC | O_CREAT));

    if (S_ISLNK(attr->mode) && !(flags & O_PATH))
        return flags & O_DIRECTORY ? -ENOTDIR : -ELOOP;
    if ((flags & O_DIRECTORY) && !S_ISDIR(attr->mode))
        return -ENOTDIR;
    if (S_ISDIR(attr->mode) && writes && !(flags & O_PATH))
        return -EISDIR;
    return 0;
}

static int open_found(struct memefs *fs, const struct mfs_attr *attr, int flags,
                      struct memefs_file **file)
{
    struct mfs_file *open;
    bool keep;
    int rc = check_kind(attr, flags);

    if (rc == 0 && (flags & O_PATH))
        return file_new(fs, NULL, attr, flags, file);
    if (rc == 0)
        rc = mfs_rights_open(fs->vfs, &fs->ids, attr, flags);
    if (rc < 0)
        return rc;
    if (S_ISDIR(attr->mode))
        return file_new(fs, NULL, attr, flags, file);
    if (!S_ISREG(attr->mode))
        return -EOPNOTSUPP;
    rc = mfs_vfs_open(fs->vfs, attr->ino, vfs_flags(fs, flags), &open, &keep);
    return rc < 0 ? rc : file_new(fs, open, attr, flags, file);
}

static int open_plain(struct memefs *fs, struct memefs_file *at, const char *path, int flags,
                      struct memefs_file **file)
{
    struct mfs_attr attr = {0};
    int rc = mfs_lib_look(fs, at, path, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0, &attr);

    return rc < 0 ? rc : open_found(fs, &attr, flags, file);
}

/* --- creating --------------------------------------------------------------------------------- */

static int create_at(struct memefs *fs, const struct mfs_path_last *last, int flags, mode_t mode,
                     struct memefs_file **file)
{
    const struct mfs_cred cred = mfs_lib_cred(fs, &last->dir);
    struct mfs_file *open;
    struct mfs_attr attr = {0};
    bool keep;
    int rc =
        mfs_vfs_create_open(fs->vfs, last->dir.ino, last->name, mode & 07777,
                            vfs_flags(fs, flags) | (flags & O_EXCL), &cred, &attr, &open, &keep);

    return rc < 0 ? rc : file_new(fs, open, &attr, flags, file);
}

static int check_created(const struct mfs_path_last *last, int flags)
{
    if (mfs_lib_is_dots(last))
        return flags & O_EXCL ? -EEXIST : -EISDIR;
    return last->slash ? -EISDIR : 0;
}

/* Goes along links to where the file is, or is to be made. -ESTALE: look again. */
static int create_looking(struct memefs *fs, uint64_t from, const char *path, int flags,
                          mode_t mode, struct memefs_file **file)
{
    struct mfs_path_last last = {0};
    int rc =
        mfs_path_last(fs->vfs, &fs->ids, from, path, true, !(flags & (O_EXCL | O_NOFOLLOW)), &last);

    if (rc == 0)
        rc = check_created(&last, flags);
    if (rc < 0)
        return rc;
    if (last.found && (flags & O_EXCL))
        return -EEXIST;
    if (last.found) {
        rc = open_found(fs, &last.attr, flags, file);
        return rc == -ENOENT ? -ESTALE : rc;
    }
    rc = mfs_rights_make(fs->vfs, &fs->ids, &last.dir);
    return rc < 0 ? rc : create_at(fs, &last, flags, mode, file);
}

static int create(struct memefs *fs, struct memefs_file *at, const char *path, int flags,
                  mode_t mode, struct memefs_file **file)
{
    struct mfs_path_last last = {0};
    uint64_t from = MFS_ROOT_INO;
    unsigned tries = 0;
    int rc = path == NULL ? -EINVAL : *path == '/' ? 0 : mfs_lib_from(fs, at, &from);

    if (rc == 0 && (flags & O_DIRECTORY))
        rc = -EINVAL;
    if (rc == 0)
        rc = mfs_path_last(fs->vfs, &fs->ids, from, path, false, false, &last);
    if (rc == 0)
        rc = check_created(&last, flags);
    if (rc < 0)
        return rc;
    rc = mfs_rights_make(fs->vfs, &fs->ids, &last.dir);
    if (rc == 0)
        rc = create_at(fs, &last, flags, mode, file);
    else if (rc == -EACCES)
        rc = -ESTALE; /* it may be there, and permit what is asked for */
    while (mfs_lib_again(rc, &tries))
        rc = create_looking(fs, from, path, flags, mode, file);
    return rc;
}

static int nameless_once(struct memefs *fs, struct memefs_file *at, const char *path, int flags,
                         mode_t mode, struct memefs_file **file)
{
    struct mfs_attr dir = {0}, attr = {0};
    struct mfs_file *open;
    struct mfs_cred cred;
    bool keep;
    int rc = mfs_lib_look(fs, at, path, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0, &dir);

    if (rc == 0)
        rc = mfs_rights_make(fs->vfs, &fs->ids, &dir);
    if (rc < 0)
        return rc;
    cred = mfs_lib_cred(fs, &dir);
    rc = mfs_vfs_tmpfile(fs->vfs, dir.ino, NULL, mode & 07777,
                         vfs_flags(fs, flags) | (flags & O_EXCL), &cred, &attr, &open, &keep);
    return rc < 0 ? rc : file_new(fs, open, &attr, flags, file);
}

static int make_nameless(struct memefs *fs, struct memefs_file *at, const char *path, int flags,
                         mode_t mode, struct memefs_file **file)
{
    unsigned tries = 0;
    int rc;

    if ((flags & O_CREAT) || (flags & O_ACCMODE) == O_RDONLY)
        return -EINVAL;
    do {
        rc = nameless_once(fs, at, path, flags, mode, file);
    } while (mfs_lib_again(rc, &tries));
    return rc;
}

int mfs_lib_open(struct memefs *fs, struct memefs_file *at, const char *path, int flags,
                 mode_t mode, struct memefs_file **file)
{
    unsigned tries = 0;
    int rc;

    *file = NULL;
    if ((flags & O_ACCMODE) == O_ACCMODE)
        return -EINVAL;
    if (flags & O_PATH)
        flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW;
    if ((flags & O_TMPFILE) == O_TMPFILE)
        return make_nameless(fs, at, path, flags, mode, file);
    if (flags & O_CREAT)
        return create(fs, at, path, flags, mode, file);
    do {
        rc = open_plain(fs, at, path, flags, file);
    } while (mfs_lib_again(rc, &tries));
    return rc;
}

int memefs_openat(struct memefs *fs, struct memefs_file *at, const char *path, int flags,
                  mode_t mode, struct memefs_file **file)
{
    int rc = mfs_lib_enter(fs);

    if (rc == 0 && file == NULL)
        rc = -EINVAL;
    if (rc == 0)
        rc = mfs_lib_open(fs, at, path, flags, mode, file);
    else if (file != NULL)
        *file = NULL;
    return (int)mfs_lib_end(rc, "open", path);
}

/* --- closing ---------------------------------------------------------------------------------- */

int mfs_lib_close(struct memefs_file *f)
{
    struct memefs *fs = f->fs;
    int rc = 0;

    pthread_mutex_lock(&fs->lock);
    DL_DELETE(fs->files, f);
    pthread_mutex_unlock(&fs->lock);
    if (f->open != NULL) {
        rc = mfs_vfs_flush(f->open, f->owner);
        mfs_vfs_release(f->open);
    }
    pthread_mutex_destroy(&f->lock);
    free(f);
    return rc;
}

int memefs_close(struct memefs_file *file)
{
    int rc = file != NULL ? mfs_lib_enter_file(file) : 0;

    if (rc == 0 && file != NULL)
        rc = mfs_lib_close(file);
    return (int)mfs_lib_end(rc, "close", NULL);
}
