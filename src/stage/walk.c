/* Finds what there is to copy. A directory's task opens both sides and adds a task for each name in
 * it; what a name is, the task itself looks up, so that many look-ups are under way at a time. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stage/impl.h"

#define NAMES_MOST 1024

struct mfs_stage_item *mfs_stage_item_create(struct mfs_stage_dir *dir, const char *from,
                                             const char *to)
{
    bool same = !strcmp(from, to);
    size_t a = strlen(from) + 1, b = same ? 0 : strlen(to) + 1;
    struct mfs_stage_item *i = malloc(sizeof *i + a + b);

    if (!i) {
        mfs_stage_fail(dir->stage, dir, from, false, -ENOMEM, "out of memory");
        return NULL;
    }
    memset(i, 0, sizeof *i);
    memcpy(i->from, from, a);
    i->to = same ? i->from : i->from + a;
    memcpy(i->from + a, to, b);
    i->dir = dir;
    mfs_stage_dir_get(dir);
    mfs_stage_tally_add(dir->stage->tally, MFS_STAGE_FOUND, 1);
    return i;
}

void mfs_stage_item_destroy(struct mfs_stage_item *i)
{
    mfs_stage_dir_put(i->dir);
    free(i);
}

/* ---- a directory ----------------------------------------------------------------------------- */

static struct mfs_stage_item *item_of(struct mfs_stage_task *t)
{
    return (struct mfs_stage_item *)((char *)t - offsetof(struct mfs_stage_item, task));
}

/* By no name, which may be a link by now. */
static int unlock(int dir, const char *name)
{
    char path[40];
    int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rc;

    if (fd < 0)
        return -errno;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    rc = chmod(path, 0700) < 0 ? -errno : 0;
    close(fd);
    return rc;
}

/* As long as it is being filled only this user may look into it. */
static int make(struct mfs_stage_dir *d, const struct mfs_stage_item *i)
{
    struct mfs_stage *s = d->stage;
    int rc = mkdirat(i->dir->to, i->to, 0700);

    if (rc < 0 && errno != EEXIST)
        return -errno;
    d->fresh = !rc && !s->plan->shared;
    d->to = openat(i->dir->to, i->to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (d->to < 0 && errno == EACCES && s->self.st_uid) { /* an earlier run has closed it */
        int opened = unlock(i->dir->to, i->to);

        if (opened < 0)
            return opened;
        d->to = openat(i->dir->to, i->to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (d->to < 0)
        return errno == ELOOP ? -ENOTDIR : -errno;
    if (!d->fresh && s->self.st_uid && (d->st.st_mode & S_IRWXU) != S_IRWXU)
        fchmod(d->to, 0700);
    if (!rc)
        mfs_stage_tally_add(s->tally, MFS_STAGE_DIRECTORIES, 1);
    return 0;
}

static bool open_target(struct mfs_stage_dir *d, const struct mfs_stage_item *i)
{
    int rc = make(d, i);

    if (!rc)
        rc = mfs_stage_dir_learn(d);
    if (rc == -ENOTDIR)
        mfs_stage_fail(d->stage, i->dir, i->to, true, rc,
                       "is there and is no directory: move it out of the way");
    else if (rc < 0)
        mfs_stage_fail(d->stage, i->dir, i->to, true, rc, "%s", strerror(-rc));
    return !rc;
}

static bool open_source(struct mfs_stage_dir *d, const struct mfs_stage_item *i)
{
    struct mfs_stage *s = d->stage;
    int follow = i->from[strlen(i->from) - 1] == '/' ? 0 : O_NOFOLLOW;
    bool inside = false;

    d->from = openat(i->dir->from, i->from, O_RDONLY | O_DIRECTORY | O_CLOEXEC | follow);
    if (d->from < 0 || fstat(d->from, &d->st) < 0) {
        mfs_stage_fail(s, i->dir, i->from, false, -errno, "%s", strerror(errno));
        return false;
    }
    /* A directory that copies come into: the target, or one that a list names or that is made. */
    for (const struct mfs_stage_dir *in = i->dir; in && !inside; in = in->parent)
        inside = d->st.st_dev == in->to_dev && d->st.st_ino == in->to_ino;
    if (inside || (d->st.st_dev == s->dev && d->st.st_ino == s->ino)) {
        mfs_stage_fail(s, i->dir, i->from, false, -EINVAL,
                       "is the target itself, which is not copied into itself");
        return false;
    }
    return true;
}

/* Names that have been read, and not walked yet. */
struct names {
    struct mfs_stage_dir *dir;
    unsigned n, most;
    struct {
        struct mfs_stage_item *item;
        void (*walk)(struct mfs_stage_item *i);
    } of[NAMES_MOST];
};

static void walk_names(struct names *l)
{
    unsigned first = l->n ? l->dir->stage->turn % l->n : 0;

    for (unsigned i = 0; i < l->n; i++) {
        unsigned at = (first + i) % l->n;

        l->of[at].walk(l->of[at].item);
        mfs_stage_pool_help(l->dir->stage->pool);
    }
    l->n = 0;
}

static bool add(void *arg, const struct dirent *e)
{
    struct names *l = arg;
    struct mfs_stage *s = l->dir->stage;
    struct mfs_stage_item *i;

    if (mfs_stage_ends(s))
        return false;
    if (mfs_stage_is_temporary(e->d_name)) {
        mfs_stage_tally_add(s->tally, MFS_STAGE_LEFT_OUT, 1);
        return true;
    }
    i = mfs_stage_item_create(l->dir, e->d_name, e->d_name);
    if (!i)
        return true;
    l->of[l->n].item = i;
    l->of[l->n].walk = e->d_type == DT_DIR ? mfs_stage_walk_directory : mfs_stage_walk_item;
    if (++l->n == l->most)
        walk_names(l);
    return true;
}

/* Of processes that see the same names in the same order each begins elsewhere among so many of
 * them: else each would find the others at work at each name. */
static void add_all(struct mfs_stage_dir *d)
{
    struct names names = {.dir = d, .most = d->stage->plan->shared ? NAMES_MOST : 1};
    int rc = mfs_stage_each_name(d->from, add, &names);

    walk_names(&names);
    if (rc)
        mfs_stage_fail(d->stage, d, NULL, false, rc, "%s", strerror(-rc));
}

/* What is the target itself has the lock in it, whose end changes its times. */
static void finish_late(struct mfs_stage_dir *d)
{
    mfs_stage_dir_get(d);
    d->late = d->stage->late;
    while (!atomic_compare_exchange_weak(&d->stage->late, &d->late, d))
        ;
}

static void run_directory(struct mfs_stage_task *task)
{
    struct mfs_stage_item *i = item_of(task);
    struct mfs_stage *s = i->dir->stage;
    struct mfs_stage_dir *d =
        mfs_stage_ends(s) ? NULL : mfs_stage_dir_create(s, i->dir, i->from, i->to);

    if (!d) {
        if (!mfs_stage_ends(s))
            mfs_stage_fail(s, i->dir, i->from, false, -ENOMEM, "out of memory");
    } else {
        if (open_source(d, i) && open_target(d, i)) {
            d->takes = true;
            if (!strcmp(i->to, "."))
                finish_late(d);
            mfs_stage_keep_hints(d);
            add_all(d);
        }
        mfs_stage_dir_put(d);
    }
    mfs_stage_item_destroy(i);
}

/* ---- what others are at --------------------------------------------------------------------- */

void mfs_stage_defer(struct mfs_stage_item *i)
{
    struct mfs_stage *s = i->dir->stage;

    pthread_mutex_lock(&s->mutex);
    i->next = s->deferred;
    s->deferred = i;
    pthread_mutex_unlock(&s->mutex);
}

bool mfs_stage_walk_deferred(struct mfs_stage *s)
{
    struct mfs_stage_item *i, *next;

    pthread_mutex_lock(&s->mutex);
    i = s->deferred;
    s->deferred = NULL;
    pthread_mutex_unlock(&s->mutex);
    if (!i)
        return false;
    for (; i; i = next) {
        next = i->next;
        mfs_stage_pool_add(s->pool, &i->task); /* which begins with whether it is to be done */
    }
    return true;
}

/* Of what one process does for all. */
static bool is_made(const struct mfs_stage_item *i, const struct stat *st)
{
    struct stat there;

    return !fstatat(i->dir->to, i->to, &there, AT_SYMLINK_NOFOLLOW) &&
           (there.st_mode & S_IFMT) == (st->st_mode & S_IFMT) &&
           there.st_nlink >= st->st_nlink && /* what makes it may die before its other names */
           (!S_ISREG(st->st_mode) ||
            (there.st_size == st->st_size && there.st_mtim.tv_sec == st->st_mtim.tv_sec &&
             there.st_mtim.tv_nsec == st->st_mtim.tv_nsec));
}

/* True: it is taken care of. */
static bool leave(struct mfs_stage_item *i, const struct stat *st)
{
    struct mfs_stage *s = i->dir->stage;

    if (!s->plan->shared || (S_ISREG(st->st_mode) && st->st_nlink < 2) || mfs_stage_leads(s))
        return false;
    if (is_made(i, st))
        mfs_stage_item_destroy(i);
    else
        mfs_stage_defer(i);
    return true;
}

/* ---- anything -------------------------------------------------------------------------------- */

static void run_item(struct mfs_stage_task *task)
{
    struct mfs_stage_item *i = item_of(task);
    struct mfs_stage *s = i->dir->stage;
    struct stat st;

    if (mfs_stage_ends(s)) {
        mfs_stage_item_destroy(i);
    } else if (fstatat(i->dir->from, i->from, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        mfs_stage_fail(s, i->dir, i->from, false, -errno, "%s", strerror(errno));
        mfs_stage_item_destroy(i);
    } else if (i->has_sum && !S_ISREG(st.st_mode)) {
        mfs_stage_fail(s, i->dir, i->from, false, -EINVAL,
                       "is no file, which the checksum of the list could be of");
        mfs_stage_item_destroy(i);
    } else if (S_ISDIR(st.st_mode)) {
        mfs_stage_walk_directory(i);
    } else if (i->from[strlen(i->from) - 1] == '/') {
        mfs_stage_fail(s, i->dir, i->from, false, -ENOTDIR, "%s", strerror(ENOTDIR));
        mfs_stage_item_destroy(i);
    } else if (mfs_stage_place_take(i) && !leave(i, &st) && mfs_stage_link_begin(i, &st)) {
        if (S_ISREG(st.st_mode))
            mfs_stage_copy_file(i, &st);
        else
            mfs_stage_copy_other(i, &st);
    }
}

void mfs_stage_walk_item(struct mfs_stage_item *i)
{
    i->task.run = run_item;
    i->task.queue = &i->dir->queue;
    mfs_stage_pool_add(i->dir->stage->pool, &i->task);
}

void mfs_stage_walk_directory(struct mfs_stage_item *i)
{
    i->task.run = run_directory;
    mfs_stage_pool_add_directory(i->dir->stage->pool, &i->task);
}
