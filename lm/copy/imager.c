/* One thread reads all the node's images and writes their files: the children and the disk are
 * slower than it is. A stream whose file does not take more is not read, so its child waits. */
#include "lm/copy/imager.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "host/mountinfo.h"
#include "base/text.h"
#include "base/trusted_dir.h"
#include "store/admin/admin.h"
#include "store/admin/image.h"

#define AREA       "image"
#define CALL_LIMIT (2 * MFS_SEC)
#define STALL_MOST (30 * MFS_SEC) /* without a byte from any process */

static_assert(CALL_LIMIT < STALL_MOST, "a call is given up first");
#define LOOK 100 /* ms between two looks at `cancel` */

struct item {
    struct mfs_redis redis;
    struct mfs_admin *admin;
    struct mfs_image *image;
    struct mfs_admin_cut before;
    struct mfs_image_sum *sum;
    int64_t halted_at; /* 0: not halted */
    int fd;
    bool whole;
};

struct mfs_imager {
    char deployment[MFS_NAME_MAX], dir[PATH_MAX];
    int fd; /* of dir, from `halt` on */
    struct item *item;
    struct mfs_imager_part *part; /* n of each */
    struct pollfd *poll;
    size_t n;
    int64_t until; /* when the first one goes on by itself */
    _Atomic uint64_t written;
    atomic_bool cancel;
};

struct mfs_imager *mfs_imager_create(const char *deployment, const char *dir,
                                     const struct mfs_redis *r, size_t n)
{
    struct mfs_imager *im = calloc(1, sizeof *im);

    if (!im)
        return NULL;
    im->fd = -1;
    im->item = calloc(n + 1, sizeof *im->item);
    im->part = calloc(n + 1, sizeof *im->part);
    im->poll = calloc(n + 1, sizeof *im->poll);
    if (!im->item || !im->part || !im->poll) {
        mfs_imager_destroy(im);
        return NULL;
    }
    mfs_text_copy(im->deployment, sizeof im->deployment, deployment);
    mfs_text_copy(im->dir, sizeof im->dir, dir);
    im->n = n;
    for (size_t i = 0; i < n; i++) {
        im->item[i] = (struct item){.redis = r[i], .fd = -1};
        im->part[i].part = r[i].part;
    }
    return im;
}

/* Lets it go on; *cut as of before that. */
static int resume(struct item *it, struct mfs_admin_cut *cut, struct mfs_err *err)
{
    int rc;

    if (!it->halted_at)
        return 0;
    rc = mfs_admin_resume(it->admin, cut, err);
    it->halted_at = 0;
    return rc;
}

static void resume_all(struct mfs_imager *im)
{
    struct mfs_admin_cut cut;
    struct mfs_err err = {0};

    for (size_t i = 0; i < im->n; i++)
        if (resume(&im->item[i], &cut, &err))
            mfs_warn(AREA, "partition %u goes on by itself: %s", im->part[i].part, err.msg);
}

static void drop(struct item *it)
{
    mfs_image_close(it->image);
    mfs_admin_close(it->admin);
    mfs_image_sum_destroy(it->sum);
    if (it->fd >= 0)
        close(it->fd);
    it->image = NULL;
    it->admin = NULL;
    it->sum = NULL;
    it->fd = -1;
}

void mfs_imager_destroy(struct mfs_imager *im)
{
    if (!im)
        return;
    resume_all(im);
    for (size_t i = 0; i < im->n; i++)
        drop(&im->item[i]);
    if (im->fd >= 0)
        close(im->fd);
    free(im->item);
    free(im->part);
    free(im->poll);
    free(im);
}

void mfs_imager_cancel(struct mfs_imager *im)
{
    atomic_store(&im->cancel, true);
}

uint64_t mfs_imager_written(const struct mfs_imager *im)
{
    return atomic_load(&im->written);
}

const struct mfs_imager_part *mfs_imager_parts(const struct mfs_imager *im, size_t *n)
{
    *n = im->n;
    return im->part;
}

static int canceled(const struct mfs_imager *im, struct mfs_err *err)
{
    return atomic_load(&im->cancel) ? mfs_err_set(err, -ECANCELED, "the checkpoint was given up")
                                    : 0;
}

/* ---- halt ------------------------------------------------------------------------------------ */

static int open_dir(struct mfs_imager *im, struct mfs_err *err)
{
    struct mfs_mountinfo over;

    /* First of all, as looking at it there would wait for what is about to be halted. */
    if (!mfs_mountinfo_over(im->dir, &over) && !strcmp(over.fstype, "fuse.memefs") &&
        !strcmp(over.source, im->deployment))
        return mfs_err_set(err, -ENOTSUP, "%s is in the file system that is to be saved", im->dir);
    im->fd = mfs_trusted_dir_open(im->dir, 0, NULL, err);
    if (im->fd == -ENOENT || im->fd == -ENOTDIR)
        return mfs_err_set(err, -ENOENT,
                           "does not see the directory %s: checkpoints need a file system that all "
                           "nodes share",
                           im->dir);
    return im->fd < 0 ? im->fd : 0;
}

static int open_item(struct item *it, uint64_t *losses, struct mfs_err *err)
{
    const struct mfs_redis *r = &it->redis;
    int rc = mfs_admin_open(&it->admin, r->unix_path, NULL, 0, r->admin_password, CALL_LIMIT, err);

    if (!rc) /* a copy may have left it otherwise */
        rc = mfs_admin_send_freely(it->admin, err);
    if (!rc) /* another process in its place is found out by the connection's end */
        rc = mfs_admin_losses(it->admin, losses, err);
    if (!rc)
        rc = mfs_image_open(&it->image, r->unix_path, r->admin_password, CALL_LIMIT, err);
    if (!rc && !(it->sum = mfs_image_sum_create(NULL)))
        rc = mfs_err_set(err, -ENOMEM, "out of memory");
    return rc;
}

int mfs_imager_halt(struct mfs_imager *im, uint32_t ms, struct mfs_err *err)
{
    int rc = open_dir(im, err);

    for (size_t i = 0; i < im->n && !rc; i++)
        rc = open_item(&im->item[i], &im->part[i].losses, err);
    im->until = mfs_clock_mono() + (int64_t)ms * MFS_MSEC;
    for (size_t i = 0; i < im->n && !rc; i++) {
        struct item *it = &im->item[i];

        it->halted_at = mfs_clock_mono();
        rc = mfs_admin_hold(it->admin, ms, &it->before, err);
    }
    if (!rc)
        rc = canceled(im, err);
    if (rc)
        resume_all(im);
    return rc;
}

/* ---- cut ------------------------------------------------------------------------------------- */

static int cut_one(struct mfs_imager *im, size_t i, uint64_t *halted_us, struct mfs_err *err)
{
    struct item *it = &im->item[i];
    int64_t halted_at = it->halted_at;
    struct mfs_admin_cut after = {0};
    uint64_t us;
    int rc = mfs_image_await(it->image, im->until, err);

    if (rc == -ETIMEDOUT)
        rc = err->code = -EAGAIN;
    if (!rc)
        rc = resume(it, &after, err);
    if (rc)
        return rc;
    if (after.changes != it->before.changes)
        return mfs_err_set(err, -EAGAIN, "partition %u was changed before it had forked",
                           im->part[i].part);
    im->part[i].memory = after.used_memory;
    us = (uint64_t)(mfs_clock_mono() - halted_at) / 1000;
    if (us > *halted_us)
        *halted_us = us;
    return 0;
}

int mfs_imager_cut(struct mfs_imager *im, uint64_t *halted_us, struct mfs_err *err)
{
    int rc = canceled(im, err);

    *halted_us = 0;
    for (size_t i = 0; i < im->n && !rc; i++)
        rc = mfs_image_ask(im->item[i].image, err);
    for (size_t i = 0; i < im->n && !rc; i++)
        rc = cut_one(im, i, halted_us, err);
    if (rc)
        resume_all(im);
    return rc;
}

/* ---- write ----------------------------------------------------------------------------------- */

static int open_file(struct mfs_imager *im, size_t i, struct mfs_err *err)
{
    char name[32];

    snprintf(name, sizeof name, "partition-%u.rdb", im->part[i].part);
    im->item[i].fd = mfs_trusted_open(im->fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (im->item[i].fd >= 0)
        return 0;
    return mfs_err_set(err, im->item[i].fd, "%s/%s: %s", im->dir, name, strerror(-im->item[i].fd));
}

static int file_failed(const struct mfs_imager *im, size_t i, int rc, struct mfs_err *err)
{
    return mfs_err_set(err, rc, "%s/partition-%u.rdb: %s", im->dir, im->part[i].part,
                       strerror(-rc));
}

/* What has come of one of them. 1 when something has. */
static int pass_on(struct mfs_imager *im, size_t i, struct mfs_err *err)
{
    struct item *it = &im->item[i];
    const char *p;
    size_t n;
    int rc = mfs_image_take(it->image, &p, &n, err);

    if (!rc && n) {
        rc = mfs_image_sum_add(it->sum, p, n);
        if (!rc)
            rc = mfs_file_write_all(it->fd, p, n);
        if (rc)
            return file_failed(im, i, rc, err);
        im->part[i].bytes += n;
        atomic_fetch_add(&im->written, n);
    }
    if (rc)
        return rc;
    if (mfs_image_whole(it->image)) {
        rc = mfs_image_sum_text(it->sum, im->part[i].sum);
        if (rc)
            return file_failed(im, i, rc, err);
        it->whole = true;
        mfs_image_close(it->image); /* its process waits for that to be done with it */
        it->image = NULL;
        return 1;
    }
    return n > 0;
}

static bool fill_poll(struct mfs_imager *im)
{
    bool any = false;

    for (size_t i = 0; i < im->n; i++) {
        bool more = !im->item[i].whole;

        im->poll[i] =
            (struct pollfd){.fd = more ? mfs_image_fd(im->item[i].image) : -1, .events = POLLIN};
        any |= more;
    }
    return any;
}

static int pump(struct mfs_imager *im, struct mfs_err *err)
{
    int64_t last = mfs_clock_mono();
    int rc = 0;

    while (rc >= 0 && fill_poll(im)) {
        rc = canceled(im, err);
        if (!rc && mfs_clock_mono() - last > STALL_MOST)
            rc = mfs_err_set(err, -ETIMEDOUT, "no process has sent anything for %lld s",
                             (long long)(STALL_MOST / MFS_SEC));
        if (!rc)
            poll(im->poll, im->n, LOOK);
        for (size_t i = 0; i < im->n && rc >= 0; i++) {
            rc = im->poll[i].revents ? pass_on(im, i, err) : 0;
            if (rc > 0)
                last = mfs_clock_mono();
        }
    }
    return rc < 0 ? rc : 0;
}

/* The directory's own entries are for the command that commits the checkpoint. */
static int settle(struct mfs_imager *im, struct mfs_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < im->n && !rc; i++) {
        rc = canceled(im, err);
        if (!rc && fsync(im->item[i].fd))
            rc = file_failed(im, i, -errno, err);
    }
    return rc;
}

int mfs_imager_write(struct mfs_imager *im, struct mfs_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < im->n && !rc; i++)
        rc = open_file(im, i, err);
    if (!rc)
        rc = pump(im, err);
    if (!rc)
        rc = settle(im, err);
    for (size_t i = 0; i < im->n; i++)
        drop(&im->item[i]); /* on failure that ends the children */
    return rc;
}
