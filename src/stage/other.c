/* Symbolic links, fifos, devices and sockets, as cp -a copies them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "stage/impl.h"

static int read_link(int dir, const char *name, char text[PATH_MAX])
{
    ssize_t n = readlinkat(dir, name, text, PATH_MAX - 1);

    if (n < 0)
        return -errno;
    text[n] = '\0';
    return 0;
}

/* 1: the target has just that; -EISDIR. */
static int is_there(const struct mfs_stage_item *i, const struct stat *st, const char *text)
{
    struct stat there;
    char points[PATH_MAX];

    if (i->dir->fresh || fstatat(i->dir->to, i->to, &there, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (S_ISDIR(there.st_mode))
        return -EISDIR;
    if ((there.st_mode & S_IFMT) != (st->st_mode & S_IFMT))
        return 0;
    if (S_ISLNK(st->st_mode))
        return !read_link(i->dir->to, i->to, points) && !strcmp(points, text);
    return there.st_rdev == st->st_rdev && there.st_mode == st->st_mode &&
           there.st_uid == st->st_uid && there.st_gid == st->st_gid;
}

static int make(int dir, const char *name, const struct stat *st, const char *text)
{
    int rc = S_ISLNK(st->st_mode) ? symlinkat(text, dir, name)
                                  : mknodat(dir, name, st->st_mode & (S_IFMT | 0700), st->st_rdev);

    return rc < 0 ? -errno : 0;
}

static int copy(const struct mfs_stage_item *i, const struct stat *st, const char *text)
{
    char name[MFS_STAGE_TEMPORARY_MAX];
    int rc;

    mfs_stage_temporary(i->dir, i->to, name);
    rc = make(i->dir->to, name, st, text);
    if (rc == -EEXIST && !unlinkat(i->dir->to, name, 0))
        rc = make(i->dir->to, name, st, text);
    if (rc < 0)
        return rc;
    rc = mfs_stage_keep_name(i->dir, i->from, name, st);
    if (!rc && renameat(i->dir->to, name, i->dir->to, i->to) < 0)
        rc = -errno;
    if (rc < 0)
        unlinkat(i->dir->to, name, 0);
    return rc;
}

void mfs_stage_copy_other(struct mfs_stage_item *i, const struct stat *st)
{
    struct mfs_stage *s = i->dir->stage;
    char text[PATH_MAX] = "";
    int rc = S_ISLNK(st->st_mode) ? read_link(i->dir->from, i->from, text) : 0, there = 0;

    if (rc < 0) {
        mfs_stage_fail(s, i->dir, i->from, false, rc, "%s", strerror(-rc));
    } else {
        there = is_there(i, st, text);
        rc = there < 0 ? there : there ? 0 : copy(i, st, text);
        if (rc < 0)
            mfs_stage_fail(s, i->dir, i->to, true, rc, "%s", strerror(-rc));
        else if (there)
            mfs_stage_drop_left(i);
        else
            mfs_stage_tally_add(s->tally, MFS_STAGE_OTHERS, 1);
    }
    mfs_stage_link_end(i, st, !rc);
    mfs_stage_item_destroy(i);
}
