/* Walking through directories. */
#include "cm/state/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/trusted_dir.h"

#define NODE "node-"

struct walk {
    const char *pattern;
    int (*each)(void *arg, const char *path);
    void *arg;
};

int mfs_walk(const char *dir, const char *pattern, int (*each)(void *arg, const char *path),
             void *arg)
{
    char path[PATH_MAX];
    struct dirent *e;
    DIR *d;
    int fd = mfs_trusted_open(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0), rc = 0;

    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    d = fdopendir(fd);
    if (!d) {
        rc = -errno;
        close(fd);
        return rc;
    }
    while (!rc && (e = readdir(d))) {
        if (fnmatch(pattern, e->d_name, FNM_PERIOD))
            continue;
        rc = mfs_text_format(path, sizeof path, "%s/%s", dir, e->d_name);
        if (!rc)
            rc = each(arg, path);
    }
    closedir(d);
    return rc;
}

bool mfs_walk_is_node(const char *path)
{
    const char *name = strrchr(path, '/') + 1, *digits = name + sizeof NODE - 1;

    return !strncmp(name, NODE, sizeof NODE - 1) && *digits &&
           !digits[strspn(digits, "0123456789")];
}

static int visit_node(void *arg, const char *path)
{
    const struct walk *w = arg;

    return mfs_walk_is_node(path) ? w->each(w->arg, path) : 0;
}

int mfs_walk_node_dirs(const struct mfs_paths *p, int (*each)(void *arg, const char *path),
                       void *arg)
{
    struct walk w = {NULL, each, arg};

    return mfs_walk(p->dir, NODE "*", visit_node, &w);
}

static int walk_node(void *arg, const char *path)
{
    const struct walk *w = arg;

    return mfs_walk(path, w->pattern, w->each, w->arg);
}

int mfs_walk_nodes(const struct mfs_paths *p, const char *pattern,
                   int (*each)(void *arg, const char *path), void *arg)
{
    struct walk w = {pattern, each, arg};

    return mfs_walk_node_dirs(p, walk_node, &w);
}
