/* Open directories: a listing taken at the beginning and shown piece by piece, so that names that
 * exist throughout are seen exactly once and telldir's answers stay true. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "vfs/names/listed.h"
#include "vfs/vnode/vnode.h"

struct mfs_dirh {
    struct mfs_vfs *vfs;
    uint64_t ino;
    int flags; /* of open(2) */
    pthread_mutex_t
        lock; /* guards listing; held while it is fetched and shown: one reader at a time */
    struct mfs_listing *listing;
    /* What the last answer shows, which the kernel has taken when it comes back; under lock, too.
     */
    uint64_t *shown;
    size_t nshown, shown_cap;
    size_t learned; /* how far the listing's files have been looked up */
};

int mfs_vfs_opendir(struct mfs_vfs *vfs, uint64_t ino, int flags, struct mfs_dirh **dir)
{
    struct mfs_dirh *d = calloc(1, sizeof *d);

    if (d == NULL)
        return -ENOMEM;
    d->vfs = vfs;
    d->ino = ino;
    d->flags = flags;
    pthread_mutex_init(&d->lock, NULL);
    *dir = d;
    return 0;
}

static void taken(struct mfs_dirh *d)
{
    mfs_meta_shown(d->vfs->meta, d->shown, d->nshown, MFS_META_SHOWN);
    d->nshown = 0;
}

void mfs_vfs_releasedir(struct mfs_dirh *d)
{
    taken(d);
    free(d->shown);
    mfs_listing_free(d->listing);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static void accessed(struct mfs_dirh *d)
{
    const struct mfs_vfs_opts *o = &d->vfs->opts;
    struct mfs_attr attr;

    if (!o->no_atime && !o->no_diratime && !(d->flags & O_NOATIME) &&
        mfs_meta_dir(d->vfs->meta, d->ino, MFS_SEC, &attr) == 0)
        mfs_meta_touch_atime(d->vfs->meta, d->ino, &attr);
}

static int take_listing(struct mfs_dirh *d)
{
    struct mfs_listing *l;
    int rc = mfs_meta_list(d->vfs->meta, d->ino, &l);

    if (rc < 0)
        return rc == -ESTALE ? -ENOENT : rc; /* as Linux says of a removed directory */
    mfs_listing_free(d->listing);
    d->listing = l;
    mfs_listed_put(d->vfs->listed, d->ino, mfs_listing_ref(l));
    d->learned = 0;
    accessed(d);
    return 0;
}

/* For one more. */
static bool room(struct mfs_dirh *d)
{
    size_t cap = d->shown_cap ? 2 * d->shown_cap : 64;
    uint64_t *grown;

    if (d->nshown < d->shown_cap)
        return true;
    grown = realloc(d->shown, cap * sizeof *grown);
    if (grown == NULL)
        return false;
    d->shown = grown;
    d->shown_cap = cap;
    return true;
}

/* With the first name of an answer the directory counts as shown, too. */
static bool begins(struct mfs_dirh *d)
{
    if (d->nshown == 0 && mfs_meta_show_names(d->vfs->meta, d->ino))
        d->shown[d->nshown++] = d->ino;
    return d->nshown > 0;
}

/* Is it known by now, and may it be shown? What is not known is learned, and the next ones too. */
static bool known(struct mfs_dirh *d, size_t at, const struct mfs_dirent *e, struct mfs_attr *attr)
{
    struct mfs_meta *meta = d->vfs->meta;

    if (e->type != S_IFREG || !room(d) || !begins(d) || !room(d))
        return false;
    if (mfs_meta_show(meta, d->ino, e, attr))
        return true;
    if (at < d->learned)
        return false;
    d->learned = mfs_meta_learn(meta, d->ino, d->listing, NULL, at, MFS_META_LEARN) == 0
                     ? at + MFS_META_LEARN
                     : SIZE_MAX; /* not once more: some partition does not answer */
    return mfs_meta_show(meta, d->ino, e, attr);
}

/* What the kernel may use of an entry without asking; not of a file that is being written here. */
static bool show(struct mfs_dirh *d, size_t at, const struct mfs_dirent *e, struct mfs_attr *attr)
{
    if (!known(d, at, e, attr))
        return false;
    d->shown[d->nshown++] = e->ino;
    return mfs_vfs_is_current(d->vfs, attr);
}

int mfs_vfs_readdir(struct mfs_dirh *d, uint64_t cookie, bool plus, mfs_vfs_dirent_fn *fn,
                    void *arg)
{
    int rc = 0;

    pthread_mutex_lock(&d->lock);
    taken(d);
    if (cookie == 0 || d->listing == NULL)
        rc = take_listing(d);
    for (size_t at = cookie; rc == 0 && at < mfs_listing_count(d->listing); at++) {
        struct mfs_dirent e = mfs_listing_at(d->listing, at);
        struct mfs_attr attr;

        if (!fn(arg, &e, plus && show(d, at, &e, &attr) ? &attr : NULL, at + 1))
            break;
    }
    pthread_mutex_unlock(&d->lock);
    return rc;
}
