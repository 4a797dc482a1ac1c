#include "lm/place.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/trusted_dir.h"
#include "host/proc.h"

#define SECRET_MAX 256

/* Calls each(path) for what matches in a directory, until it returns something else than 0, which
 * is returned. What can't be opened has nothing in it. */
static int walk(const char *dir, const char *pattern, int (*each)(void *arg, const char *path),
                void *arg)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    char path[PATH_MAX];
    int rc = 0;

    while (d && !rc && (e = readdir(d))) {
        if (fnmatch(pattern, e->d_name, FNM_PERIOD))
            continue;
        rc = mfs_text_format(path, sizeof path, "%s/%s", dir, e->d_name);
        if (!rc)
            rc = each(arg, path);
    }
    if (d)
        closedir(d);
    return rc;
}

/* ---- what is there already ------------------------------------------------------------------- */

static int find_living(void *found, const char *pid_file)
{
    struct mfs_proc p;

    if (mfs_proc_load(pid_file, &p) || p.pid == getpid() || !mfs_proc_alive(&p))
        return 0;
    *(struct mfs_proc *)found = p;
    return 1;
}

static int look_into_node(void *found, const char *dir)
{
    return walk(dir, "*.pid", find_living, found);
}

static int remove_tree(void *arg, const char *path)
{
    (void)arg;
    return mfs_file_remove_tree(path);
}

static int remove_unlocked(void *arg, const char *path)
{
    (void)arg;
    return strcmp(strrchr(path, '/'), "/lm.lock") ? mfs_file_remove_tree(path) : 0;
}

static int remove_node(void *own, const char *dir)
{
    return strcmp(dir, own) ? mfs_file_remove_tree(dir) : walk(dir, "*", remove_unlocked, NULL);
}

/* Has the file this very secret? 1, 0, or a negative errno. */
static int has_secret(const struct mfs_paths *p, const char *secret)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_trusted_read(p->secret, SECRET_MAX, &b);
    if (!rc)
        rc = mfs_buf_append(&b, "", 1);
    if (!rc) {
        ((char *)mfs_buf_data(&b))[strcspn(mfs_buf_data(&b), "\r\n")] = '\0';
        rc = !strcmp(mfs_buf_data(&b), secret);
    }
    mfs_buf_fini(&b);
    return rc == -ENOENT ? 0 : rc;
}

/* Of a deployment with another secret. */
static int clear_remains(const struct mfs_paths *p, uint32_t node, struct mfs_err *err)
{
    struct mfs_proc living = {0};
    char own[PATH_MAX];
    int rc;

    if (!access(p->state, F_OK))
        return mfs_err_set(err, -EBUSY,
                           "%s is the state of another deployment: choose another "
                           "directory for this node",
                           p->dir);
    rc = mfs_paths_node(p, node, "", own);
    if (!rc)
        rc = walk(p->dir, "node-*", look_into_node, &living);
    if (rc == 1)
        return mfs_err_set(
            err, -EBUSY,
            "%s belongs to another deployment, of which process %d (%s) runs: choose "
            "another directory for this node, or stop that one",
            p->dir, (int)living.pid, living.comm);
    if (!rc)
        rc = walk(p->dir, "node-*", remove_node, own);
    return rc ? mfs_err_set(err, rc, "%s: %s", p->dir, strerror(-rc)) : 0;
}

int mfs_place_take(const struct mfs_paths *p, uint32_t node, const char *secret,
                   struct mfs_err *err)
{
    char line[SECRET_MAX + 1];
    int rc = has_secret(p, secret), n;

    if (rc == 1)
        return 0;
    if (rc < 0)
        return mfs_err_set(err, rc, "%s: %s", p->secret, strerror(-rc));
    rc = clear_remains(p, node, err);
    if (rc)
        return rc;
    n = snprintf(line, sizeof line, "%s\n", secret);
    rc = mfs_file_write(p->secret, line, (size_t)n, 0600);
    explicit_bzero(line, sizeof line);
    return rc ? mfs_err_set(err, rc, "%s: %s", p->secret, strerror(-rc)) : 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

static int found(void *arg, const char *path)
{
    (void)arg;
    (void)path;
    return 1;
}

/* A node that comes makes its directory before it looks for the secret. */
static void remove_common(const struct mfs_paths *p)
{
    if (!access(p->state, F_OK) || walk(p->dir, "node-*", found, NULL))
        return;
    unlink(p->secret);
    unlink(p->log); /* of a cm that has moved to another machine */
    unlink(p->events);
    unlink(p->old_events);
    unlink(p->failure);
    walk(p->dir, "mount-*.log", remove_tree, NULL); /* of clients that were mounted by hand */
    walk(p->dir, "*.log.*", remove_tree, NULL);     /* what logrotate has put aside */
    if (rmdir(p->dir) && errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST)
        mfs_warn("lm", "%s: %s", p->dir, strerror(errno));
}

void mfs_place_leave(const struct mfs_paths *p, uint32_t node)
{
    char dir[PATH_MAX];
    int rc = mfs_paths_node(p, node, "", dir);

    if (!rc)
        rc = mfs_file_remove_tree(dir);
    if (rc && rc != -ENOENT)
        mfs_warn("lm", "%s: %s", dir, strerror(-rc));
    remove_common(p);
}
