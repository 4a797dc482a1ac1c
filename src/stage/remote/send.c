/* What there is to send to a server: files of trees, found below open directories, so that one that
 * becomes a link meanwhile does not lead elsewhere. */
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

/* A directory, and where its files go. */
struct names {
    struct mfs_stage_dir *dir;
    const char *to;
    bool any;
};

static bool send_name(void *arg, const struct dirent *e)
{
    struct names *l = arg;
    struct mfs_stage_dir *d = l->dir;
    char below[PATH_MAX];

    l->any = true;
    if (mfs_stage_is_temporary(e->d_name))
        mfs_stage_tally_add(d->stage->tally, MFS_STAGE_LEFT_OUT, 1);
    else if (mfs_text_format(below, sizeof below, "%s%s%s", l->to, *l->to ? "/" : "", e->d_name))
        tell(d, e->d_name, -ENAMETOOLONG);
    else
        send_any(d, e->d_name, below);
    return !mfs_stage_ends(d->stage);
}

/* A server has no directory but by a file in it. */
static void send_all(struct mfs_stage_dir *d, const char *to)
{
    struct names names = {d, to, false};
    int rc = mfs_stage_each_name(d->from, send_name, &names);

    if (rc)
        tell(d, NULL, rc);
    else if (!names.any)
        mfs_stage_tally_add(d->stage->tally, MFS_STAGE_LEFT_OUT, 1);
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
