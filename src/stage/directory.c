#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "stage/impl.h"

static void dir_free(struct mfs_stage_dir *d)
{
    mfs_stage_small_destroy(d->small);
    mfs_stage_left_destroy(d->left);
    free(d->from_name);
    free(d->to_name);
    free(d);
}

struct mfs_stage_dir *mfs_stage_dir_create(struct mfs_stage *s, struct mfs_stage_dir *parent,
                                           const char *from, const char *to)
{
    struct mfs_stage_dir *d = calloc(1, sizeof *d);

    if (!d)
        return NULL;
    *d = (struct mfs_stage_dir){.stage = s,
                                .parent = parent,
                                .from_name = strdup(from),
                                .to_name = strdup(to),
                                .from = AT_FDCWD,
                                .to = -1,
                                .uses = 1};
    d->small = mfs_stage_small_create();
    d->left = mfs_stage_left_create();
    if (d->from_name && d->to_name && d->small && d->left) {
        if (parent)
            mfs_stage_dir_get(parent);
        return d;
    }
    dir_free(d);
    return NULL;
}

void mfs_stage_dir_get(struct mfs_stage_dir *d)
{
    d->uses++;
}

static void finish(struct mfs_stage_dir *d)
{
    int rc;

    if (d->parent && d->to >= 0 && strcmp(d->to_name, ".") != 0)
        mfs_stage_remains_note(d);
    rc = d->takes ? mfs_stage_keep_fd(d, d->from, d->to, &d->st, (mode_t)-1) : 0;

    if (rc < 0)
        mfs_stage_fail(d->stage, d, NULL, true, rc, "attributes: %s", strerror(-rc));
}

void mfs_stage_dir_put(struct mfs_stage_dir *d)
{
    while (d && --d->uses == 0) {
        struct mfs_stage_dir *parent = d->parent;

        finish(d);
        if (d->from >= 0)
            close(d->from);
        if (d->to >= 0)
            close(d->to);
        dir_free(d);
        d = parent;
    }
}

int mfs_stage_dir_learn(struct mfs_stage_dir *d)
{
    struct stat st;

    if (fstat(d->to, &st) < 0)
        return -errno;
    d->to_dev = st.st_dev;
    d->to_ino = st.st_ino;
    d->gid = st.st_mode & S_ISGID ? st.st_gid : d->stage->self.st_gid;
    d->acl = fgetxattr(d->to, "system.posix_acl_default", NULL, 0) > 0;
    return 0;
}

int mfs_stage_each_name(int dir, bool (*each)(void *arg, const struct dirent *e), void *arg)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = fd < 0 ? -errno : 0;
    DIR *names = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;

    if (fd >= 0 && !names) {
        close(fd);
        return -ENOMEM;
    }
    for (bool more = names; more;) {
        errno = 0;
        e = readdir(names);
        if (!e)
            rc = -errno;
        more = e && (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || each(arg, e));
    }
    if (names)
        closedir(names);
    return rc;
}

/* Its own part of a path comes behind those of the directories above it. */
static size_t put_path(const struct mfs_stage_dir *d, bool target, char *out, size_t n)
{
    const char *name = target ? d->to_name : d->from_name;
    size_t len = d->parent ? put_path(d->parent, target, out, n) : 0;
    bool slash = len > 0 && len < n && out[len - 1] != '/' && *name;
    int more;

    if (len >= n || (d->parent && !strcmp(name, ".")))
        return len;
    more = snprintf(out + len, n - len, "%s%s", slash ? "/" : "", name);
    return len + (size_t)(more > 0 ? more : 0);
}

void mfs_stage_path(const struct mfs_stage_dir *d, const char *name, bool target, char *out,
                    size_t n)
{
    size_t len = put_path(d, target, out, n);

    if (name && len < n && strcmp(name, ".") != 0)
        snprintf(out + len, n - len, "%s%s", len && out[len - 1] != '/' ? "/" : "", name);
}
