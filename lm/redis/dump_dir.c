/* Making the dump directory; see the header. */
#include "lm/redis/dump_dir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "base/trusted_dir.h"

#define AREA "redis"

/* The end of the path with so many names, without the slash before it; NULL: it has not so many. */
static char *tail(char *path, int names)
{
    char *at = path + strlen(path);

    while (names && at > path)
        names -= *--at == '/';
    return names ? NULL : at + 1;
}

static int say(int rc, const char *dir, const char *name, struct mfs_err *err)
{
    const char *why = rc == -EPERM || rc == -ELOOP || rc == -ENOTDIR
                          ? "it is not a directory that only this user can use; remove it"
                          : strerror(-rc);

    return mfs_err_set(err, rc, "%s/%s: %s", dir, name, why);
}

int mfs_dump_dir_make(char *path, struct mfs_err *err)
{
    char base[PATH_MAX], above[NAME_MAX + 1], node[NAME_MAX + 1], *at = tail(path, 2);
    int dir, fd, rc;

    if (!at || sscanf(at, "%255[^/]/%255[^/]", above, node) != 2)
        return mfs_err_set(err, -EINVAL, "%s: no place for dumps", path);
    at[at > path + 1 ? -1 : 0] = '\0';
    dir = mfs_trusted_dir_open(path, MFS_TRUSTED_SHARED, base, err);
    if (dir < 0)
        return dir;
    fd = mfs_trusted_dir_private(dir, above);
    close(dir);
    if (fd < 0)
        return say(fd, base, above, err);
    rc = mfs_trusted_dir_private(fd, node);
    close(fd);
    if (rc < 0)
        return say(rc, base, node, err);
    close(rc);
    rc = mfs_text_format(path, PATH_MAX, "%s/%s/%s", base, above, node);
    return rc ? mfs_err_set(err, rc, "%s: %s", base, strerror(-rc)) : 0;
}

const char *mfs_dump_dir_or(const char *path, const char *other)
{
    char again[PATH_MAX];
    struct mfs_err err = {0};
    int rc = strcmp(path, other) ? mfs_text_copy(again, sizeof again, path) : 0;

    if (!rc && strcmp(path, other))
        rc = mfs_dump_dir_make(again, &err);
    if (!rc)
        return path;
    mfs_warn(AREA, "dumps go to %s, as %s can't be used: %s", other, path, err.msg);
    return other;
}
