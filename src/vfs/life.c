/* Beginning and end of the whole, and what the layers below call. Made from below, ended from
 * above; but the tables of vnodes stay until the threads of meta, which look for what is open, are
 * gone. */
#include "vfs/names/listed.h"
#include "vfs/vfs.h"

#include <errno.h>
#include <stdlib.h>

#include <utlist.h>

#include "base/metrics.h"
#include "data/stripes/geometry.h"
#include "data/stripes/stripes.h"
#include "vfs/locks/lock_wait.h"
#include "vfs/content/append.h"
#include "vfs/content/privileges.h"
#include "vfs/vnode/file.h"
#include "vfs/locks/lock_owners.h"
#include "vfs/vnode/vnode.h"

#define THREADS_DEFAULT 4U
#define LISTED_DEFAULT  65536U /* names: as many as files that are known under leases */
#define HEADS_DEFAULT   (32U << 20)

static int reap(void *arg, uint64_t ino, uint64_t data_end)
{
    struct mfs_vfs *vfs = arg;
    int rc = mfs_stripes_trim(vfs->store, ino, 0, data_end, false, NULL);

    mfs_writeback_freed(vfs->wb);
    return rc;
}

static bool revoked(void *arg, uint64_t ino, bool name, bool own, void (*done)(void *done_arg),
                    void *done_arg)
{
    struct mfs_vfs *vfs = arg;
    mfs_meta_revoked_fn *fn = atomic_load(&vfs->revoke);

    return !fn || fn(atomic_load(&vfs->revoke_arg), ino, name, own, done, done_arg);
}

static void distrust(void *arg)
{
    struct mfs_vfs *vfs = arg;
    mfs_meta_distrust_fn *fn = atomic_load(&vfs->distrust);

    if (fn)
        fn(atomic_load(&vfs->revoke_arg));
}

static void recalled(void *arg, uint64_t ino, void (*done)(void *done_arg), void *done_arg)
{
    struct mfs_vfs *vfs = arg;
    mfs_meta_recalled_fn *fn = atomic_load(&vfs->recall);

    if (fn)
        fn(atomic_load(&vfs->recall_arg), ino, done, done_arg);
    else if (done)
        done(done_arg);
}

/* Files that are open are looked at afresh a moment later (mfs_meta_changed_fn). */
static void replaced(void *arg)
{
    struct mfs_vfs *vfs = arg;

    mfs_pages_forget_all(vfs->pages);
}

static int start_data(struct mfs_vfs *vfs)
{
    struct mfs_writeback_opts wb = {.threads = vfs->opts.threads,
                                    .max_bytes = vfs->opts.write_window,
                                    .metrics = vfs->opts.metrics};
    struct mfs_readahead_opts ra = {.threads = vfs->opts.threads,
                                    .max_bytes = vfs->opts.read_window};
    int rc = mfs_writeback_create(&vfs->wb, vfs->store, &wb);

    if (rc == 0)
        rc = mfs_readahead_pool_create(&vfs->ra, vfs->store, &ra);
    return rc;
}

static const char *const pages[] = {"dropped", "kept"};

static const struct mfs_metric metrics[MFS_VFS_METRICS] = {
    [MFS_VFS_OPENS] = {.name = "memefs_opens_total",
                       .help = "Files opened, by what became of pages that the kernel may have.",
                       .kind = MFS_METRIC_COUNTER,
                       .label = {{"pages", pages, 2}}}};

int mfs_vfs_create(struct mfs_vfs **out, struct mfs_store *store, const struct mfs_vfs_opts *opts)
{
    struct mfs_vfs *vfs = calloc(1, sizeof *vfs);
    struct mfs_meta_opts meta = {.reap = reap,
                                 .changed = mfs_vnode_changed_elsewhere,
                                 .granted = mfs_privileges_granted,
                                 .end_wanted = mfs_append_end_wanted,
                                 .revoked = opts->leases ? revoked : NULL,
                                 .distrust = distrust,
                                 .recalled = recalled,
                                 .replaced = replaced,
                                 .arg = vfs,
                                 .contents = opts->contents,
                                 .files = opts->files,
                                 .names = opts->names,
                                 .dir_names = opts->dir_names,
                                 .metrics = opts->metrics};
    int rc = -ENOMEM;

    if (vfs == NULL)
        return -ENOMEM;
    vfs->store = store;
    vfs->opts = *opts;
    if (vfs->opts.threads == 0)
        vfs->opts.threads = THREADS_DEFAULT;
    if (vfs->opts.heads == 0)
        vfs->opts.heads = HEADS_DEFAULT;
    vfs->stripe_size = mfs_store_stripe_size(store);
    mfs_vnode_init_shards(vfs);
    vfs->pages = mfs_pages_create();
    if (opts->leases)
        vfs->listed = mfs_listed_create(opts->files ? opts->files : LISTED_DEFAULT);
    if (vfs->pages == NULL || (opts->leases && vfs->listed == NULL))
        goto out;
    rc = mfs_metric_set_create(&vfs->metrics, opts->metrics, metrics, MFS_VFS_METRICS);
    if (rc == 0)
        rc = start_data(vfs);
    if (rc < 0)
        goto out;
    rc = mfs_lock_wait_create(&vfs->waits);
    if (rc < 0)
        goto out;
    rc = mfs_meta_create(&vfs->meta, store, &meta);
out:
    if (rc < 0) {
        mfs_vfs_destroy(vfs);
        vfs = NULL;
    }
    *out = vfs;
    return rc;
}

void mfs_vfs_stop_waiting(struct mfs_vfs *vfs)
{
    mfs_lock_wait_stop(vfs->waits);
}

static struct mfs_file *take_file(struct mfs_vnode *v)
{
    struct mfs_file *f;

    pthread_mutex_lock(&v->lock);
    f = v->files;
    if (f != NULL) {
        DL_DELETE(v->files, f);
        mfs_owner_drop_file(f);
    }
    pthread_mutex_unlock(&v->lock);
    return f;
}

static void abandon(struct mfs_vnode *v)
{
    struct mfs_file *f;

    mfs_append_stop(v); /* senders go on for a while, and have nothing to give back then */
    while ((f = take_file(v)) != NULL)
        mfs_file_free(f);
}

void mfs_vfs_destroy(struct mfs_vfs *vfs)
{
    if (vfs == NULL)
        return;
    mfs_lock_wait_destroy(vfs->waits);
    mfs_vnode_abandon_all(vfs, abandon);
    if (vfs->meta != NULL)
        mfs_meta_destroy(vfs->meta);
    mfs_vnode_fini_shards(vfs); /* until then meta's threads look for what is open */
    if (vfs->wb != NULL)
        mfs_writeback_destroy(vfs->wb);
    if (vfs->ra != NULL)
        mfs_readahead_pool_destroy(vfs->ra);
    mfs_pages_destroy(vfs->pages);
    mfs_listed_destroy(vfs->listed);
    mfs_metric_set_destroy(vfs->metrics);
    free(vfs);
}

void mfs_vfs_on_invalidate(struct mfs_vfs *vfs, mfs_vfs_invalidate_fn *fn, void *arg)
{
    atomic_store(&vfs->invalidate_arg, arg);
    atomic_store(&vfs->invalidate, fn);
}

void mfs_vfs_on_revoke(struct mfs_vfs *vfs, mfs_meta_revoked_fn *on_revoke,
                       mfs_meta_distrust_fn *on_distrust, void *arg)
{
    atomic_store(&vfs->revoke_arg, arg);
    atomic_store(&vfs->distrust, on_distrust);
    atomic_store(&vfs->revoke, on_revoke);
}

void mfs_vfs_on_recall(struct mfs_vfs *vfs, mfs_meta_recalled_fn *fn, void *arg)
{
    atomic_store(&vfs->recall_arg, arg);
    atomic_store(&vfs->recall, fn);
}

struct mfs_meta *mfs_vfs_meta(struct mfs_vfs *vfs)
{
    return vfs->meta;
}

struct mfs_store *mfs_vfs_store(struct mfs_vfs *vfs)
{
    return vfs->store;
}

int mfs_vfs_statfs(struct mfs_vfs *vfs, struct mfs_meta_space *space)
{
    return mfs_meta_statfs(vfs->meta, space);
}
