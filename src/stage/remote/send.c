/* What there is to send to a server: files of trees, found below open directories, so that one that
 * becomes a link meanwhile does not lead elsewhere. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "stage/remote/impl.h"

static void tell(const struct mfs_stage_dir *d, const char *name, int code)
{
    mfs_stage_fail(d->stage, d, name, false, code, "%s", strerror(-code));
}

static void send_any(struct mfs_stage_dir *d, const char *name, const char *to);

static bool is_temporary(const char *name)
{
    return !strncmp(name, MFS_STAGE_TEMPORARY, strlen(MFS_STAGE_TEMPORARY));
}

/* One of a directory's names. */
static void send_name(struct mfs_stage_dir *d, const char *name, const char *to)
{
    char below[PATH_MAX];

    if (is_temporary(name))
        mfs_stage_tally_add(d->stage->tally, MFS_STAGE_LEFT_OUT, 1);
    else if (mfs_text_format(below, sizeof below, "%s%s%s", to, *to ? "/" : "", name))
        tell(d, name, -ENAMETOOLONG);
    else
        send_any(d, name, below);
}

/* A server has no directory but by a file in it. */
static void send_all(struct mfs_stage_dir *d, const char *to)
{
    int fd = fcntl(d->from, F_DUPFD_CLOEXEC, 0);
    DIR *names = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;
    bool empty = true;

    if (fd >= 0 && !names)
        close(fd);
    errno = fd < 0 || names ? errno : ENOMEM;
    while (names && !mfs_stage_ends(d->stage)) {
        errno = 0;
        e = readdir(names);
        if (!e)
            break;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        empty = false;
        send_name(d, e->d_name, to);
        errno = 0;
    }
    if (errno)
        tell(d, NULL, -errno);
    else if (empty)
        mfs_stage_tally_add(d->stage->tally, MFS_STAGE_LEFT_OUT, 1);
    if (names)
        closedir(names);
}

static void send_directory(struct mfs_stage_dir *in, const char *name, const char *to)
{
    struct mfs_stage_dir *d = mfs_stage_dir_create(in->stage, in, name, "");
    int follow = name[strlen(name) - 1] == '/' ? 0 : O_NOFOLLOW;

    if (!d) {
        tell(in, name, -ENOMEM);
        return;
    }
    d->from = openat(in->from, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | follow);
    if (d->from < 0)
        tell(in, name, -errno);
    else
        send_all(d, to);
    mfs_stage_dir_put(d);
}

static void send_any(struct mfs_stage_dir *d, const char *name, const char *to)
{
    struct stat st;

    if (fstatat(d->from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        tell(d, name, -errno);
    else if (S_ISDIR(st.st_mode))
        send_directory(d, name, to);
    else if (S_ISREG(st.st_mode))
        mfs_stage_put_file(d, name, to, (uint64_t)st.st_size);
    else
        mfs_stage_fail(d->stage, d, name, false, -EOPNOTSUPP,
                       "a server keeps files only: no links, no special files");
}

/* Below the target. */
static const char *place_of(const struct mfs_stage *s, const struct mfs_stage_entry *e)
{
    const char *name = e->to, *slash = strrchr(e->from, '/');

    if (!name)
        name = slash ? slash + 1 : e->from; /* "": what is in the directory */
    return s->plan->exact || !strcmp(name, ".") ? "" : name;
}

void mfs_stage_send(struct mfs_stage_dir *top, const struct mfs_stage_entry *e)
{
    send_any(top, e->from, place_of(top->stage, e));
}
