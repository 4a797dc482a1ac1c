/* Reading mountinfo and getting rid of dead mounts; see the header. */
#include "host/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

#define MOUNTINFO_MAX (16U << 20)

/* Blanks and backslashes in paths are written as \ooo. Copies up to the next blank, decoded. */
static void unescape(const char *from, char *to, size_t n)
{
    size_t len = 0;

    while (*from && *from != ' ' && len + 1 < n) {
        if (from[0] == '\\' && from[1] && from[2] && from[3]) {
            to[len++] = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            to[len++] = *from++;
        }
    }
    to[len] = '\0';
}

/* "rw,nosuid,relatime …": the words up to the next blank. */
static unsigned long parse_flags(const char *options)
{
    static const struct {
        const char *word;
        unsigned long flag;
    } known[] = {{"ro", MS_RDONLY},        {"nosuid", MS_NOSUID},   {"nodev", MS_NODEV},
                 {"noexec", MS_NOEXEC},    {"noatime", MS_NOATIME}, {"nodiratime", MS_NODIRATIME},
                 {"relatime", MS_RELATIME}};
    unsigned long flags = 0;

    while (*options && *options != ' ') {
        size_t len = strcspn(options, ", ");

        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (strlen(known[i].word) == len && !strncmp(options, known[i].word, len))
                flags |= known[i].flag;
        options += len + (options[len] == ',');
    }
    return flags;
}

/* "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAGS…] - FSTYPE SOURCE SUPEROPTIONS" */
static int parse_line(const char *line, struct mfs_mountinfo *info)
{
    int root = 0, point = 0, options = 0, source = 0;
    const char *fstype;

    if (sscanf(line, "%*u %*u %u:%u %n%*s %n%*s %n", &info->major, &info->minor, &root, &point,
               &options) != 2 ||
        !options)
        return -EINVAL;
    unescape(line + root, info->root, sizeof info->root);
    unescape(line + point, info->point, sizeof info->point);
    info->flags = parse_flags(line + options);
    fstype = strstr(line + options, " - ");
    if (!fstype || sscanf(fstype, " - %31s %n", info->fstype, &source) != 1 || !source)
        return -EINVAL;
    unescape(fstype + source, info->source, sizeof info->source);
    return 0;
}

int mfs_mountinfo_each(const char *text, int (*each)(void *arg, const struct mfs_mountinfo *m),
                       void *arg)
{
    struct mfs_mountinfo one;
    char line[3 * PATH_MAX];
    int rc = 0;

    while (*text && !rc) {
        size_t len = strcspn(text, "\n");

        if (len < sizeof line) {
            memcpy(line, text, len);
            line[len] = '\0';
            if (!parse_line(line, &one))
                rc = each(arg, &one);
        }
        text += len + (text[len] == '\n');
    }
    return rc;
}

struct search {
    const char *path;
    struct mfs_mountinfo *info;
    int rc;
};

/* Later lines are mounted over earlier ones. */
static int take_at_path(void *arg, const struct mfs_mountinfo *m)
{
    struct search *s = arg;

    if (!strcmp(m->point, s->path)) {
        *s->info = *m;
        s->rc = 0;
    }
    return 0;
}

int mfs_mountinfo_parse(const char *text, const char *path, struct mfs_mountinfo *info)
{
    struct search s = {path, info, -ENOENT};

    mfs_mountinfo_each(text, take_at_path, &s);
    return s.rc;
}

int mfs_mountinfo_read(pid_t pid, struct mfs_buf *text)
{
    char path[64] = "/proc/self/mountinfo";
    int rc;

    if (pid)
        snprintf(path, sizeof path, "/proc/%d/mountinfo", (int)pid);
    rc = mfs_file_read(path, MOUNTINFO_MAX, text);
    return rc ? rc : mfs_buf_append(text, "", 1);
}

int mfs_mountinfo_find(const char *path, struct mfs_mountinfo *info)
{
    struct mfs_buf text;
    int rc;

    mfs_buf_init(&text);
    rc = mfs_mountinfo_read(0, &text);
    if (!rc)
        rc = mfs_mountinfo_parse(mfs_buf_data(&text), path, info);
    mfs_buf_fini(&text);
    return rc;
}

/* The longest mount point that the path begins with; the later of two, which hides the other. */
static int take_over(void *arg, const struct mfs_mountinfo *m)
{
    struct search *s = arg;
    size_t n = strlen(m->point), best = s->rc ? 0 : strlen(s->info->point);
    bool root = !strcmp(m->point, "/");

    if (n >= best &&
        (root || (!strncmp(s->path, m->point, n) && (s->path[n] == '/' || s->path[n] == '\0')))) {
        *s->info = *m;
        s->rc = 0;
    }
    return 0;
}

int mfs_mountinfo_over(const char *path, struct mfs_mountinfo *info)
{
    struct search s = {path, info, -ENOENT};
    struct mfs_buf text;
    int rc;

    mfs_buf_init(&text);
    rc = mfs_mountinfo_read(0, &text);
    if (!rc)
        rc = mfs_mountinfo_each(mfs_buf_data(&text), take_over, &s);
    mfs_buf_fini(&text);
    return rc ? rc : s.rc;
}

struct bearing {
    const char *text;
    dev_t device;
    const char *under; /* a place where it is mounted */
};

static int is_under(void *arg, const struct mfs_mountinfo *m)
{
    const struct bearing *b = arg;
    size_t n = strlen(b->under);

    return !strncmp(m->point, b->under, n) && m->point[n] == '/';
}

static int bears(void *arg, const struct mfs_mountinfo *m)
{
    struct bearing b = *(const struct bearing *)arg;

    if (makedev(m->major, m->minor) != b.device)
        return 0;
    b.under = m->point;
    return mfs_mountinfo_each(b.text, is_under, &b);
}

bool mfs_mountinfo_bears(const char *text, dev_t device)
{
    struct bearing b = {text, device, NULL};

    return mfs_mountinfo_each(text, bears, &b);
}

/* The kernel's list of FUSE connections, mounted nowhere: containers often lack the usual place. */
static int open_connections(void)
{
    int context = fsopen("fusectl", FSOPEN_CLOEXEC), fd = -1, rc;

    if (context < 0)
        return -errno;
    if (!fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
        fd = fsmount(context, FSMOUNT_CLOEXEC, 0);
    rc = fd < 0 ? -errno : fd;
    close(context);
    return rc;
}

int mfs_mount_abort(unsigned minor)
{
    int connections = open_connections(), fd, rc;
    char name[64];

    if (connections < 0)
        return connections;
    snprintf(name, sizeof name, "%u/abort", minor);
    fd = openat(connections, name, O_WRONLY | O_CLOEXEC);
    rc = fd < 0 ? -errno : mfs_file_write_all(fd, "1", 1);
    if (fd >= 0)
        close(fd);
    close(connections);
    return rc;
}

int mfs_mount_detach(const char *path)
{
    if (!umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW))
        return 0;
    return errno == EINVAL || errno == ENOENT ? 0 : -errno;
}
