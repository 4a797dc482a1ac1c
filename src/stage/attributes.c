#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "stage/impl.h"

#define ACL         "system.posix_acl_access"
#define ACL_DEFAULT "system.posix_acl_default"
#define HINTS       "user.memefs."

/* ---- extended attributes --------------------------------------------------------------------- */

/* Either descriptors, or paths: the source's is not followed, the target's leads to an open file.
 */
struct pair {
    int from, to;
    const char *from_path, *to_path; /* NULL: the descriptors */
};

static ssize_t list(const struct pair *p, char *names, size_t n)
{
    ssize_t len = p->from_path ? llistxattr(p->from_path, names, n) : flistxattr(p->from, names, n);

    return len < 0 ? -errno : len;
}

static ssize_t get(const struct pair *p, const char *name, char *value, size_t n)
{
    ssize_t len =
        p->from_path ? lgetxattr(p->from_path, name, value, n) : fgetxattr(p->from, name, value, n);

    return len < 0 ? -errno : len;
}

static int set(const struct pair *p, const char *name, const char *value, size_t n)
{
    int rc =
        p->to_path ? setxattr(p->to_path, name, value, n, 0) : fsetxattr(p->to, name, value, n, 0);

    return rc < 0 ? -errno : 0;
}

/* Of what the target, or this user, can't keep there is no word: so does cp -a. */
static int forgive(int rc)
{
    return rc == -EPERM || rc == -EACCES || rc == -EOPNOTSUPP || rc == -ENODATA ? 0 : rc;
}

static bool is_kept(const char *name)
{
    return strncmp(name, "system.", 7) != 0 || !strcmp(name, ACL) || !strcmp(name, ACL_DEFAULT);
}

/* A hint may name a node that this deployment does not have. */
static int forgive_hint(const char *name, int rc)
{
    return rc == -EINVAL && strncmp(name, HINTS, sizeof HINTS - 1) == 0 ? 0 : forgive(rc);
}

static int keep_xattr(const struct pair *p, const char *name)
{
    ssize_t len = get(p, name, NULL, 0);
    char *value;
    int rc;

    if (len < 0)
        return forgive((int)len);
    value = malloc((size_t)len + 1);
    if (!value)
        return -ENOMEM;
    len = get(p, name, value, (size_t)len);
    rc = len < 0 ? (int)len : set(p, name, value, (size_t)len);
    free(value);
    return forgive_hint(name, rc);
}

/* Where SELinux labels files, it labels those of a mount by itself, and takes no other label. */
static bool is_given(const char *name)
{
    return !strcmp(name, "security.selinux") && !access("/sys/fs/selinux/enforce", F_OK);
}

static bool is_any_kept(const char *names, ssize_t len)
{
    for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1)
        if (is_kept(names + at) && !is_given(names + at))
            return true;
    return false;
}

bool mfs_stage_has_xattrs(int fd)
{
    char names[1024];
    ssize_t len = flistxattr(fd, names, sizeof names);

    return len < 0 ? errno != EOPNOTSUPP : is_any_kept(names, len);
}

static void drop_inherited(const struct pair *p, bool directory)
{
    const char *const names[] = {ACL, ACL_DEFAULT};

    for (int i = 0; i <= directory; i++) {
        if (get(p, names[i], NULL, 0) > 0)
            continue;
        if (p->to_path)
            removexattr(p->to_path, names[i]);
        else
            fremovexattr(p->to, names[i]);
    }
}

static int keep_xattrs(const struct mfs_stage_dir *d, const struct pair *p, bool directory)
{
    char few[1024], *names = few;
    ssize_t len = list(p, few, sizeof few);
    int rc = 0;

    if (d->acl)
        drop_inherited(p, directory);
    while (len == -ERANGE) {
        ssize_t all = list(p, NULL, 0);

        if (names != few)
            free(names);
        names = all < 0 ? few : malloc((size_t)all + 1);
        if (!names)
            return -ENOMEM;
        len = all < 0 ? all : list(p, names, (size_t)all + 1);
    }
    for (ssize_t at = 0; !rc && at < len; at += (ssize_t)strlen(names + at) + 1)
        if (is_kept(names + at))
            rc = keep_xattr(p, names + at);
    if (names != few)
        free(names);
    return len < 0 ? forgive((int)len) : rc;
}

/* ---- owner, mode, times ---------------------------------------------------------------------- */

/* May it not be given away, the group at least; and nobody runs it as somebody else. */
static int change_owner(int dir, const char *name, const struct stat *st, mode_t *mode)
{
    int flags = AT_SYMLINK_NOFOLLOW | (*name ? 0 : AT_EMPTY_PATH);

    if (!fchownat(dir, name, st->st_uid, st->st_gid, flags))
        return 0;
    if (errno != EPERM && errno != EINVAL)
        return -errno;
    *mode &= (mode_t) ~(S_ISUID | S_ISGID);
    if (!fchownat(dir, name, (uid_t)-1, st->st_gid, flags) || errno == EPERM || errno == EINVAL)
        return 0;
    return -errno;
}

int mfs_stage_keep_owner(const struct mfs_stage_dir *d, int to, const struct stat *st)
{
    mode_t mode = st->st_mode & 07777;
    int rc = change_owner(to, "", st, &mode);

    (void)d;
    return rc < 0 ? rc : fchmod(to, mode) < 0 ? -errno : 0;
}

int mfs_stage_keep_fd(const struct mfs_stage_dir *d, int from, int to, const struct stat *st,
                      mode_t created)
{
    const struct pair pair = {from, to, NULL, NULL};
    const struct timespec times[2] = {st->st_atim, st->st_mtim};
    const struct mfs_stage_dir *in = S_ISDIR(st->st_mode) && d->parent ? d->parent : d;
    mode_t mode = st->st_mode & 07777;
    int rc = 0, xattrs = 0;

    if (created == (mode_t)-1 || st->st_uid != d->stage->self.st_uid || st->st_gid != in->gid)
        rc = change_owner(to, "", st, &mode);
    if (!rc) /* one that can't be kept is no reason to leave out what comes after it */
        xattrs = keep_xattrs(in, &pair, S_ISDIR(st->st_mode));
    if (!rc && (mode != created || in->acl) && fchmod(to, mode) < 0)
        rc = -errno;
    if (!rc && futimens(to, times) < 0)
        rc = -errno;
    return rc ? rc : xattrs;
}

void mfs_stage_keep_hints(const struct mfs_stage_dir *d)
{
    const struct pair pair = {d->from, d->to, NULL, NULL};

    keep_xattr(&pair, HINTS "place"); /* an error is told when all attributes are kept */
    keep_xattr(&pair, HINTS "delete-after-reads");
}

/* What has the name may be another user's, who may write into the directory: only what this process
 * has made is given an owner and a mode, and by no path that may lead elsewhere meanwhile. -ESTALE:
 * it is something else. */
static int open_made(const struct mfs_stage_dir *d, const char *name, const struct stat *st)
{
    int fd = openat(d->to, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc = fd < 0 ? -errno : 0;
    struct stat made;

    if (!rc && fstat(fd, &made) < 0)
        rc = -errno;
    if (!rc && ((made.st_mode & S_IFMT) != (st->st_mode & S_IFMT) ||
                made.st_uid != d->stage->self.st_uid || made.st_nlink != 1))
        rc = -ESTALE;
    if (rc && fd >= 0)
        close(fd);
    return rc ? rc : fd;
}

int mfs_stage_keep_name(const struct mfs_stage_dir *d, const char *from, const char *to,
                        const struct stat *st)
{
    char from_path[PATH_MAX + 40], to_path[40];
    const struct pair pair = {-1, -1, from_path, to_path};
    const struct timespec times[2] = {st->st_atim, st->st_mtim};
    mode_t mode = st->st_mode & 07777;
    int fd = open_made(d, to, st), rc = fd < 0 ? fd : change_owner(fd, "", st, &mode);

    snprintf(to_path, sizeof to_path, "/proc/self/fd/%d", fd);
    if (d->from == AT_FDCWD)
        snprintf(from_path, sizeof from_path, "%s", from);
    else
        snprintf(from_path, sizeof from_path, "/proc/self/fd/%d/%s", d->from, from);
    if (!rc && !S_ISLNK(st->st_mode) && chmod(to_path, mode) < 0)
        rc = -errno;
    if (!rc)
        rc = keep_xattrs(d, &pair, false);
    if (!rc && utimensat(fd, "", times, AT_EMPTY_PATH) < 0)
        rc = -errno;
    if (fd >= 0)
        close(fd);
    return rc;
}
