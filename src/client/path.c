/* A walk has a place, the directory reached so far (`at`), and a text, what of the path is left. A
 * symbolic link puts its target before the text. A name that another client moves while the walk is
 * under way may give -ESTALE: then it begins once more, as the kernel's do. */
#include "client/path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/placement.h"
#include "vfs/names/access.h"

struct walk {
    struct mfs_vfs *vfs;
    const struct mfs_ids *ids;
    struct mfs_attr at;
    char *text, *rest; /* rest: what is left of text */
    unsigned links;    /* followed */
    bool follow;       /* one at the end */
};

/* Takes the next name off the text. False: there is none. */
static int next_name(struct walk *w, char name[NAME_MAX + 1])
{
    size_t n;

    w->rest += strspn(w->rest, "/");
    n = strcspn(w->rest, "/");
    if (n > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(name, w->rest, n);
    name[n] = '\0';
    w->rest += n;
    return n > 0;
}

static int begin_at(struct walk *w, uint64_t ino)
{
    return mfs_vfs_getattr(w->vfs, ino, &w->at);
}

static int find(struct walk *w, const char *name, struct mfs_attr *found)
{
    int rc = S_ISDIR(w->at.mode) ? mfs_vfs_access(w->vfs, &w->at, w->ids, X_OK) : -ENOTDIR;

    if (rc < 0)
        return rc;
    if (strcmp(name, "..") == 0)
        return mfs_vfs_getattr(w->vfs, w->at.parent, found);
    if (strcmp(name, ".") != 0)
        return mfs_vfs_lookup(w->vfs, w->at.ino, name, found);
    *found = w->at;
    return 0;
}

/* The target of a link comes before what is left. */
static int enter_link(struct walk *w, uint64_t ino)
{
    char target[PATH_MAX], *text;
    int n;

    if (w->links++ == MFS_PATH_LINKS_MAX)
        return -ELOOP;
    n = mfs_vfs_readlink(w->vfs, ino, target, sizeof target - 1);
    if (n < 0)
        return n;
    target[n] = '\0';
    if (asprintf(&text, "%s%s", target, w->rest) < 0)
        return -ENOMEM;
    free(w->text);
    w->text = w->rest = text;
    return target[0] == '/' ? begin_at(w, MFS_ROOT_INO) : 0;
}

static int step(struct walk *w, const char *name)
{
    struct mfs_attr found;
    int rc = find(w, name, &found);

    if (rc < 0)
        return rc;
    if (S_ISLNK(found.mode) && (w->follow || *w->rest != '\0'))
        return enter_link(w, found.ino);
    w->at = found;
    return *w->rest != '\0' && !S_ISDIR(found.mode) ? -ENOTDIR : 0;
}

static int begin(struct walk *w, uint64_t from, const char *path)
{
    int rc;

    w->links = 0;
    w->text = w->rest = strdup(path);
    if (w->text == NULL)
        return -ENOMEM;
    rc = begin_at(w, *path == '/' ? MFS_ROOT_INO : from);
    return rc == -ESTALE ? -ENOENT : rc; /* a directory that is gone has no names */
}

static int walk(struct walk *w, uint64_t from, const char *path)
{
    char name[NAME_MAX + 1];
    int rc = begin(w, from, path);

    while (rc == 0) {
        rc = next_name(w, name);
        if (rc <= 0)
            break;
        rc = step(w, name);
    }
    free(w->text);
    return rc;
}

static int check_path(const char *path)
{
    if (*path == '\0')
        return -ENOENT;
    return strlen(path) >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int mfs_path_lookup(struct mfs_vfs *vfs, const struct mfs_ids *ids, uint64_t from, const char *path,
                    bool follow, struct mfs_attr *attr)
{
    struct walk w = {.vfs = vfs, .ids = ids, .follow = follow};
    int rc = check_path(path);

    if (rc == 0)
        rc = walk(&w, from, path);
    if (rc == -ESTALE)
        rc = walk(&w, from, path);
    if (rc == 0)
        *attr = w.at;
    return rc;
}

/* --- to the last name ------------------------------------------------------------------------- */

static bool only_slashes(const char *text)
{
    return text[strspn(text, "/")] == '\0';
}

/* Looks up the last name. 1: it is a link to go on with. */
static int look_at_last(struct walk *w, struct mfs_path_last *last)
{
    int rc = find(w, last->name, &last->attr);

    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        return rc;
    if (S_ISLNK(last->attr.mode) && w->follow) {
        rc = enter_link(w, last->attr.ino);
        return rc < 0 ? rc : 1;
    }
    last->found = true;
    return 0;
}

static int walk_to_last(struct walk *w, uint64_t from, const char *path, bool look,
                        struct mfs_path_last *last)
{
    int rc = begin(w, from, path);

    *last = (struct mfs_path_last){0};
    while (rc == 0) {
        rc = next_name(w, last->name);
        if (rc <= 0)
            break;
        last->slash = *w->rest != '\0';
        rc = 0;
        if (!only_slashes(w->rest))
            rc = step(w, last->name);
        else if (!look || (rc = look_at_last(w, last)) <= 0)
            break;
        else
            rc = 0;
    }
    free(w->text);
    last->dir = w->at;
    if (rc < 0)
        return rc;
    if (!S_ISDIR(w->at.mode))
        return -ENOTDIR;
    return last->name[0] != '\0' && !look ? mfs_vfs_access(w->vfs, &w->at, w->ids, X_OK) : 0;
}

int mfs_path_last(struct mfs_vfs *vfs, const struct mfs_ids *ids, uint64_t from, const char *path,
                  bool look, bool follow, struct mfs_path_last *last)
{
    struct walk w = {.vfs = vfs, .ids = ids, .follow = follow};
    int rc = check_path(path);

    if (rc == 0)
        rc = walk_to_last(&w, from, path, look, last);
    if (rc == -ESTALE)
        rc = walk_to_last(&w, from, path, look, last);
    return rc;
}
