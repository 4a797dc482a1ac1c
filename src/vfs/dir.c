/* Open directories: a listing taken at the beginning and shown piece by piece, so that names that
 * exist throughout are seen exactly once and telldir's answers stay true. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "vfs/vnode.h"

#define BATCH 32U /* attributes fetched at once */

struct mfs_dirh {
    struct mfs_vfs *vfs;
    uint64_t ino;
    int flags; /* of open(2) */
    pthread_mutex_t
        lock; /* guards listing; held while it is fetched and shown: one reader at a time */
    struct mfs_listing *listing;
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

void mfs_vfs_releasedir(struct mfs_dirh *d)
{
    mfs_listing_free(d->listing);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static void accessed(struct mfs_dirh *d)
{
    struct mfs_attr attr;

    if (!d->vfs->opts.no_atime && !(d->flags & O_NOATIME) &&
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
    accessed(d);
    return 0;
}

/* Shows entries [from, from + n); false when fn had enough. */
static bool show(struct mfs_dirh *d, size_t from, size_t n, mfs_vfs_dirent_fn *fn, void *arg)
{
    for (size_t i = 0; i < n; i++) {
        struct mfs_dirent e = mfs_listing_at(d->listing, from + i);

        if (!fn(arg, &e, NULL, from + i + 1))
            return false;
    }
    return true;
}

static bool show_plus(struct mfs_dirh *d, size_t from, size_t n, mfs_vfs_dirent_fn *fn, void *arg)
{
    struct mfs_attr attr[BATCH];
    uint64_t ino[BATCH];
    int rc[BATCH];

    if (n == 0)
        return true;
    for (size_t i = 0; i < n; i++)
        ino[i] = mfs_listing_at(d->listing, from + i).ino;
    if (mfs_meta_getattrs(d->vfs->meta, ino, n, attr, rc) < 0)
        return show(d, from, n, fn, arg);
    for (size_t i = 0; i < n; i++) {
        struct mfs_dirent e = mfs_listing_at(d->listing, from + i);

        if (rc[i] == 0)
            mfs_vfs_overlay_attr(d->vfs, &attr[i]);
        if (!fn(arg, &e, rc[i] == 0 ? &attr[i] : NULL, from + i + 1))
            return false;
    }
    return true;
}

int mfs_vfs_readdir(struct mfs_dirh *d, uint64_t cookie, bool plus, mfs_vfs_dirent_fn *fn,
                    void *arg)
{
    size_t count, at = cookie;
    int rc = 0;

    pthread_mutex_lock(&d->lock);
    if (cookie == 0 || d->listing == NULL)
        rc = take_listing(d);
    if (rc < 0)
        goto out;
    count = mfs_listing_count(d->listing);
    while (at < count) {
        size_t n = count - at < BATCH ? count - at : BATCH;

        if (!(plus ? show_plus : show)(d, at, n, fn, arg))
            break;
        at += n;
    }
out:
    pthread_mutex_unlock(&d->lock);
    return rc;
}
