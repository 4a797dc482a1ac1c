/* Listings of directories. Entries are taken from the vfs a batch at a time. Attributes are looked
 * up name by name: the metadata notices that the names of a listing are looked up in turn, and
 * learns many at once (vfs/names/ahead.h). */
#include "lib/dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utlist.h>

#include "lib/lib.h"

#define BATCH 128

struct entry {
    char name[MFS_NAME_LEN_MAX + 1];
    uint64_t ino, cookie;
    uint32_t type;
};

struct memefs_dir {
    struct memefs *fs;
    struct mfs_dirh *open;
    struct mfs_attr attr; /* of the directory */
    unsigned flags;
    struct entry *batch; /* BATCH of them */
    size_t n, at;        /* in it; the next one */
    uint64_t cookie;     /* where the next batch begins */
    int search;          /* may names of the batch be looked up? 0, -EACCES, … */
    bool fresh;          /* it begins with a new listing */
    struct memefs_dirent out;
    struct memefs_dir *prev, *next; /* of fs->dirs */
};

static int dir_new(struct memefs *fs, const struct mfs_attr *attr, unsigned flags,
                   struct memefs_dir **dir)
{
    struct memefs_dir *d = calloc(1, sizeof *d);
    int rc = -ENOMEM;

    if (d != NULL)
        d->batch = calloc(BATCH, sizeof *d->batch);
    if (d != NULL && d->batch != NULL)
        rc = mfs_vfs_opendir(fs->vfs, attr->ino, fs->flags & MEMEFS_NO_ATIME ? O_NOATIME : 0,
                             &d->open);
    if (rc < 0) {
        free(d != NULL ? d->batch : NULL);
        free(d);
        return rc;
    }
    d->fs = fs;
    d->attr = *attr;
    d->flags = flags;
    d->fresh = true;
    pthread_mutex_lock(&fs->lock);
    DL_APPEND(fs->dirs, d);
    pthread_mutex_unlock(&fs->lock);
    *dir = d;
    return 0;
}

static int opendir_at(struct memefs *fs, struct memefs_file *at, const char *path, unsigned flags,
                      int at_flags, struct memefs_dir **dir)
{
    struct mfs_attr attr = {0};
    int rc = mfs_lib_enter(fs);

    if (dir == NULL)
        return -EINVAL;
    *dir = NULL;
    if (rc == 0 && ((flags & ~MEMEFS_DIR_STAT) != 0 ||
                    (at_flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) != 0))
        rc = -EINVAL;
    if (rc == 0)
        rc = mfs_lib_look(fs, at, path, at_flags, &attr);
    if (rc == 0 && !S_ISDIR(attr.mode))
        rc = -ENOTDIR;
    if (rc == 0)
        rc = mfs_vfs_access(fs->vfs, &attr, &fs->ids, R_OK);
    return rc < 0 ? rc : dir_new(fs, &attr, flags, dir);
}

int memefs_opendirat(struct memefs *fs, struct memefs_file *at, const char *path, unsigned flags,
                     int at_flags, struct memefs_dir **dir)
{
    unsigned tries = 0;
    int rc;

    do {
        rc = opendir_at(fs, at, path, flags, at_flags, dir);
    } while (mfs_lib_again(rc, &tries));
    return (int)mfs_lib_end(rc, "opendir", path);
}

static bool take(void *arg, const struct mfs_dirent *e, const struct mfs_attr *attr,
                 uint64_t cookie)
{
    struct memefs_dir *d = arg;
    struct entry *to = &d->batch[d->n];

    (void)attr;
    if (d->n == BATCH)
        return false;
    memcpy(to->name, e->name, e->len + 1);
    to->ino = e->ino;
    to->type = e->type;
    to->cookie = cookie;
    d->n++;
    return true;
}

/* As the directory is now: its rights may have changed since it was opened. */
static void ask_for_search(struct memefs_dir *d)
{
    struct mfs_attr now = d->attr;

    if (mfs_vfs_getattr(d->fs->vfs, d->attr.ino, &now) == 0)
        d->attr = now;
    d->search = mfs_vfs_access(d->fs->vfs, &d->attr, &d->fs->ids, X_OK);
}

static int fill(struct memefs_dir *d)
{
    int rc;

    d->n = d->at = 0;
    rc = mfs_vfs_readdir(d->open, d->fresh ? 0 : d->cookie, false, take, d);
    d->fresh = false;
    if (d->n > 0)
        d->cookie = d->batch[d->n - 1].cookie;
    if (d->n > 0 && (d->flags & MEMEFS_DIR_STAT))
        ask_for_search(d);
    return rc;
}

static int attributes(struct memefs_dir *d, const struct entry *e, struct stat *st)
{
    struct memefs *fs = d->fs;
    struct mfs_attr attr = {0};
    int rc = d->search;

    if (rc == 0 && strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
        rc = mfs_vfs_lookup(fs->vfs, d->attr.ino, e->name, &attr);
    else if (rc == 0)
        rc = mfs_vfs_getattr(fs->vfs, e->ino, &attr);
    if (rc == 0)
        mfs_lib_stat(fs, &attr, st);
    return rc;
}

static int next(struct memefs_dir *d, const struct memefs_dirent **entry)
{
    const struct entry *e;
    int rc = d->at < d->n ? 0 : fill(d);

    if (rc < 0 || d->at == d->n)
        return rc;
    e = &d->batch[d->at++];
    d->out = (struct memefs_dirent){.size = sizeof d->out,
                                    .name = e->name,
                                    .ino = e->ino,
                                    .type = e->type,
                                    .stat_rc = -ENODATA,
                                    .cookie = (int64_t)e->cookie};
    if (d->flags & MEMEFS_DIR_STAT)
        d->out.stat_rc = attributes(d, e, &d->out.st);
    *entry = &d->out;
    return 1;
}

int memefs_readdir(struct memefs_dir *dir, const struct memefs_dirent **entry)
{
    int rc = dir != NULL ? mfs_lib_enter(dir->fs) : -EINVAL;

    if (entry == NULL)
        rc = -EINVAL;
    else
        *entry = NULL;
    if (rc == 0)
        rc = next(dir, entry);
    return (int)mfs_lib_end(rc, "readdir", NULL);
}

int memefs_seekdir(struct memefs_dir *dir, int64_t cookie)
{
    int rc = dir != NULL ? mfs_lib_enter(dir->fs) : -EINVAL;

    if (rc == 0 && cookie < 0)
        rc = -EINVAL;
    if (rc == 0) {
        dir->n = dir->at = 0;
        dir->cookie = (uint64_t)cookie;
        dir->fresh = cookie == 0;
    }
    return (int)mfs_lib_end(rc, "seekdir", NULL);
}

void mfs_lib_closedir(struct memefs_dir *d)
{
    pthread_mutex_lock(&d->fs->lock);
    DL_DELETE(d->fs->dirs, d);
    pthread_mutex_unlock(&d->fs->lock);
    mfs_vfs_releasedir(d->open);
    free(d->batch);
    free(d);
}

int memefs_closedir(struct memefs_dir *dir)
{
    int rc = dir != NULL ? mfs_lib_enter(dir->fs) : 0;

    if (rc == 0 && dir != NULL)
        mfs_lib_closedir(dir);
    return (int)mfs_lib_end(rc, "closedir", NULL);
}
