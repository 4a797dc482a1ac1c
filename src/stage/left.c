/* What earlier runs have left unfinished under temporary names, in directories that were there. A
 * copy that is made takes it over or removes it by itself (file.c, link.c, other.c). But which of
 * an inode's names is copied first, and how a file is copied, differs from run to run: so there may
 * be one beside a copy that is there, or that is made in another way. Where several processes copy,
 * it may be another one's that is at it: remains.c sees to these in the end.
 *
 * Of a directory that is walked through all names are listed, once; of one into which single files
 * come, which may be large, each is looked up. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stage/impl.h"

struct mfs_stage_left {
    pthread_mutex_t mutex; /* guards what follows, until it is ready */
    bool ready;
    bool unknown; /* could not be listed: there may be any */
    char **name;  /* sorted */
    size_t n;
};

struct mfs_stage_left *mfs_stage_left_create(void)
{
    struct mfs_stage_left *l = calloc(1, sizeof *l);

    if (l)
        pthread_mutex_init(&l->mutex, NULL);
    return l;
}

void mfs_stage_left_destroy(struct mfs_stage_left *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->n; i++)
        free(l->name[i]);
    free(l->name);
    pthread_mutex_destroy(&l->mutex);
    free(l);
}

static bool add(void *arg, const struct dirent *e)
{
    struct mfs_stage_left *l = arg;
    char **longer;

    if (!mfs_stage_is_temporary(e->d_name))
        return true;
    longer = realloc(l->name, (l->n + 1) * sizeof *longer);
    if (longer) {
        l->name = longer;
        longer[l->n] = strdup(e->d_name);
    }
    l->unknown = !longer || !longer[l->n];
    l->n += !l->unknown;
    return !l->unknown;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void learn(struct mfs_stage_left *l, int dir)
{
    pthread_mutex_lock(&l->mutex);
    if (!l->ready && mfs_stage_each_name(dir, add, l) < 0)
        l->unknown = true;
    if (!l->ready && l->n)
        qsort(l->name, l->n, sizeof *l->name, by_name);
    l->ready = true;
    pthread_mutex_unlock(&l->mutex);
}

static bool find(const struct mfs_stage_item *i, char name[MFS_STAGE_TEMPORARY_MAX])
{
    const struct mfs_stage_dir *d = i->dir;
    const char *key = name;

    if (d->fresh)
        return false;
    if (d->takes) {
        learn(d->left, d->to);
        if (!d->left->unknown && !d->left->n)
            return false;
    }
    mfs_stage_temporary(d, i->to, name);
    if (!d->takes || d->left->unknown)
        return !faccessat(d->to, name, F_OK, AT_SYMLINK_NOFOLLOW);
    return bsearch(&key, d->left->name, d->left->n, sizeof *d->left->name, by_name);
}

bool mfs_stage_has_left(const struct mfs_stage_item *i)
{
    char name[MFS_STAGE_TEMPORARY_MAX];

    return find(i, name);
}

void mfs_stage_drop_left(const struct mfs_stage_item *i)
{
    const struct mfs_stage_dir *d = i->dir;
    char name[MFS_STAGE_TEMPORARY_MAX];

    if (!d->stage->plan->shared && find(i, name))
        unlinkat(d->to, name, 0);
}
