/* A queue of jobs and the thread that performs them in order. A job is queued, being performed, or
 * finished; its number says which, as numbers grow and jobs finish in their order. Invariant:
 * `done` of each job that was taken is called exactly once, also when the queue stops. */
#include "fuse/mount/notify.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "host/mountinfo.h"
#include "base/threads/thread.h"
#include "fuse/mount/device.h"
#include "fuse/mount/session.h"

#define ALIAS_WAIT (100 * MFS_MSEC)

struct job {
    uint64_t ino;
    bool names;             /* are to go, else pages … */
    struct mfs_range range; /* … of this range; hi 0: all, and the file may have grown */
    void (*done)(void *arg);
    void *arg;
    uint64_t number; /* counts all, ever; they end in this order */
    struct job *next;
};

struct mfs_notify {
    struct mfs_fuse *m;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows; a leaf */
    pthread_cond_t wake, over;
    struct job *first, *last;
    uint64_t queued, finished; /* the last job's number */
    uint64_t at;               /* the inode of the one that is being done; 0: none */
    bool stop, joined;
};

static struct job *pop(struct mfs_notify *n)
{
    struct job *j = n->first;

    n->first = j->next;
    if (n->first == NULL)
        n->last = NULL;
    return j;
}

int mfs_notify_forget(struct mfs_fuse *m, uint64_t nodeid, off_t off, off_t len)
{
    int rc;

    mfs_replied_invalidated(m->replied, nodeid, mfs_clock_mono());
    rc = fuse_lowlevel_notify_inval_inode(m->se, nodeid, off, len);
    mfs_replied_invalidated(m->replied, nodeid, mfs_clock_mono());
    return rc;
}

static int forget(struct mfs_notify *n, uint64_t nodeid, off_t off, off_t len)
{
    return mfs_notify_forget(n->m, nodeid, off, len);
}

static int forget_pages(struct mfs_notify *n, uint64_t ino)
{
    int rc;

    mfs_vfs_pages_invalidated(n->m->vfs, ino);
    rc = forget(n, ino, 0, 0);
    mfs_vfs_pages_invalidated(n->m->vfs, ino);
    return rc;
}

/* Before, pages are dropped: see vfs/content/tail.h. */
static int tell_size(struct mfs_notify *n, uint64_t ino)
{
    int64_t seen = mfs_clock_mono();
    uint64_t size;
    int rc;

    if (mfs_vfs_learn_end(n->m->vfs, ino, &size) < 0 || size == 0)
        return 0;
    rc = forget_pages(n, ino);
    if (rc < 0)
        return rc;
    mfs_vfs_pages_dropped(n->m->vfs, ino, size);
    if (!mfs_replied_may_extend(n->m->replied, ino, size, seen))
        return 0;
    mfs_replied_invalidated(n->m->replied, ino, mfs_clock_mono());
    rc = mfs_device_grow(n->m->se, ino, size);
    mfs_replied_invalidated(n->m->replied, ino, mfs_clock_mono());
    return rc;
}

/* -ENOENT: the kernel has forgotten the inode, pages and all. */
static void warn_of_pages(uint64_t ino, int rc)
{
    if (rc < 0 && rc != -ENOENT && rc != -ENODEV && rc != -EBADF)
        mfs_warn("fuse", "inode %llx: pages not dropped: %s", (unsigned long long)ino,
                 strerror(-rc));
}

/* With its pages the kernel forgets attributes that it is just fetching, and a read that wanted
 * them would end at the old end of the file. So it is told the new one, unless the file's partition
 * may be the one that is about to be replaced: all pages are dropped again when that is over. */
static void drop_pages(struct mfs_notify *n, uint64_t ino)
{
    int rc = forget_pages(n, ino);

    if (rc == 0 && mfs_meta_in_contact(mfs_vfs_meta(n->m->vfs)))
        rc = tell_size(n, ino);
    warn_of_pages(ino, rc);
}

/* What this mount has written itself: the kernel knows where the file ends. */
static void drop_range(struct mfs_notify *n, uint64_t nodeid, const struct mfs_range *r)
{
    warn_of_pages(nodeid, forget(n, nodeid, (off_t)r->lo, (off_t)(r->hi - r->lo)));
}

/* libfuse 3.14 has flags there, later ones have none. */
static int expire_name(struct fuse_session *se, const struct mfs_nodeids_stale *name, size_t len)
{
#ifdef HAVE_EXPIRE_FLAGS
    return fuse_lowlevel_notify_expire_entry(se, name->parent, name->name, len,
                                             FUSE_LL_EXPIRE_ONLY);
#else
    return fuse_lowlevel_notify_expire_entry(se, name->parent, name->name, len);
#endif
}

/* Of a name that may have changed the kernel forgets everything. Where all are to be asked for anew
 * most have not: those only expire, as a process that works in a directory could not find out where
 * it is otherwise (getcwd(2)), and what is mounted on one would be unmounted. */
static int drop_name(struct mfs_notify *n, const struct mfs_nodeids_stale *name, bool all)
{
    struct fuse_session *se = n->m->se;
    size_t len = strlen(name->name);
    int rc = -ENOSYS;

    if (all)
        rc = expire_name(se, name, len);
    /* Linux before 6.2 */
    return rc == -ENOSYS ? fuse_lowlevel_notify_inval_entry(se, name->parent, name->name, len) : rc;
}

/* The kernel takes the parent's lock for it, which a call may hold that waits for another mount's
 * answer; no caller waits for this thread longer than meta/coherence/notices.c and drop_aliases
 * say. */
static void drop_names(struct mfs_notify *n, uint64_t ino)
{
    struct mfs_nodeids_stale name;

    while (mfs_nodeids_stale(n->m->nodeids, ino, &name)) {
        int rc = drop_name(n, &name, ino == 0);

        if (rc < 0 && rc != -ENOENT && rc != -ENODEV && rc != -EBADF)
            mfs_warn("fuse", "inode %llx: name not dropped: %s", (unsigned long long)ino,
                     strerror(-rc));
        forget(n, name.nodeid, -1, 0);
        mfs_nodeids_dropped(n->m->nodeids, &name);
    }
}

static void perform(struct mfs_notify *n, const struct job *j)
{
    if (j->names)
        drop_names(n, j->ino);
    else if (j->range.hi != 0)
        drop_range(n, j->ino, &j->range);
    else
        drop_pages(n, j->ino);
}

static void *run(void *arg)
{
    struct mfs_notify *n = arg;

    pthread_mutex_lock(&n->lock);
    while (!n->stop || n->first != NULL) {
        bool ask = !n->stop;
        struct job *j;

        if (n->first == NULL) {
            pthread_cond_wait(&n->wake, &n->lock);
            continue;
        }
        j = pop(n);
        n->at = j->ino;
        pthread_mutex_unlock(&n->lock);
        if (ask)
            perform(n, j);
        if (j->done != NULL)
            j->done(j->arg);
        pthread_mutex_lock(&n->lock);
        n->at = 0;
        n->finished = j->number;
        free(j);
        pthread_cond_broadcast(&n->over);
    }
    pthread_mutex_unlock(&n->lock);
    return NULL;
}

int mfs_notify_create(struct mfs_notify **out, struct mfs_fuse *m)
{
    struct mfs_notify *n = calloc(1, sizeof *n);
    int rc;

    *out = NULL;
    if (n == NULL)
        return -ENOMEM;
    n->m = m;
    pthread_mutex_init(&n->lock, NULL);
    rc = mfs_cond_init(&n->wake);
    if (rc == 0)
        rc = mfs_cond_init(&n->over);
    if (rc == 0)
        rc = mfs_thread_start(&n->thread, "notify", run, n);
    if (rc < 0) {
        free(n);
        return rc;
    }
    *out = n;
    return 0;
}

void mfs_notify_stop(struct mfs_notify *n)
{
    if (n->joined)
        return;
    pthread_mutex_lock(&n->lock);
    n->stop = true;
    pthread_cond_signal(&n->wake);
    pthread_mutex_unlock(&n->lock);
    pthread_join(n->thread, NULL);
    n->joined = true;
}

void mfs_notify_destroy(struct mfs_notify *n)
{
    if (n == NULL)
        return;
    mfs_notify_stop(n);
    pthread_cond_destroy(&n->wake);
    pthread_cond_destroy(&n->over);
    pthread_mutex_destroy(&n->lock);
    free(n);
}

/* The job's number; 0: not taken. */
static uint64_t enqueue(struct mfs_notify *n, struct job *j)
{
    uint64_t number = 0;

    pthread_mutex_lock(&n->lock);
    if (!n->stop) {
        if (n->last != NULL)
            n->last->next = j;
        else
            n->first = j;
        n->last = j;
        number = j->number = ++n->queued;
        pthread_cond_signal(&n->wake);
    }
    pthread_mutex_unlock(&n->lock);
    return number;
}

static uint64_t enqueue_new(struct mfs_notify *n, struct job new)
{
    struct job *j = malloc(sizeof *j);
    uint64_t number = 0;

    if (j != NULL) {
        *j = new;
        number = enqueue(n, j);
    }
    if (number == 0)
        free(j);
    return number;
}

/* Are all pages of the file to be dropped, by a job that has not begun? */
static bool is_queued(struct mfs_notify *n, uint64_t ino)
{
    const struct job *j;

    pthread_mutex_lock(&n->lock);
    for (j = n->first; j != NULL; j = j->next)
        if (j->ino == ino && !j->names && j->range.hi == 0)
            break;
    pthread_mutex_unlock(&n->lock);
    return j != NULL;
}

void mfs_notify_invalidate(void *arg, uint64_t ino, void (*done)(void *done_arg), void *done_arg)
{
    if (done == NULL && is_queued(arg, ino))
        return;
    if (enqueue_new(arg, (struct job){.ino = ino, .done = done, .arg = done_arg}) == 0 &&
        done != NULL)
        done(done_arg);
}

void mfs_notify_drop(struct mfs_notify *n, uint64_t nodeid, const struct mfs_range *pages,
                     void (*done)(void *done_arg), void *done_arg)
{
    struct job j = {.ino = nodeid, .range = *pages, .done = done, .arg = done_arg};

    if (enqueue_new(n, j) == 0 && done != NULL)
        done(done_arg);
}

/* With n->lock held. False: it took longer. */
static bool wait_finished(struct mfs_notify *n, uint64_t number, int64_t most)
{
    int64_t deadline = mfs_clock_mono() + most, left = most;

    while (n->finished < number && left > 0) {
        mfs_cond_wait(&n->over, &n->lock, left);
        left = deadline - mfs_clock_mono();
    }
    return left > 0;
}

void mfs_notify_settle(struct mfs_notify *n, uint64_t nodeid, int64_t most)
{
    uint64_t number = 0;

    pthread_mutex_lock(&n->lock);
    if (n->at == nodeid)
        number = n->finished + 1;
    for (const struct job *j = n->first; j != NULL; j = j->next)
        if (j->ino == nodeid)
            number = j->number;
    wait_finished(n, number, most);
    pthread_mutex_unlock(&n->lock);
}

void mfs_notify_attributes(struct mfs_notify *n, uint64_t ino)
{
    uint64_t nodeid[MFS_NODEIDS_ALIASES];
    size_t count = mfs_nodeids_leased(n->m->nodeids, ino, nodeid);

    if (ino == FUSE_ROOT_ID || ino == 0)
        forget(n, FUSE_ROOT_ID, -1, 0);
    for (size_t i = 0; i < count; i++)
        forget(n, nodeid[i], -1, 0);
}

/* What the calling thread's request itself does to names, its kernel knows. */
static _Thread_local struct mfs_dentry_key served[2];

void mfs_notify_serve(uint64_t parent, const char *name, uint64_t new_parent, const char *new_name)
{
    served[0] = (struct mfs_dentry_key){parent, name};
    served[1] = (struct mfs_dentry_key){new_parent, new_name};
}

/* The directory's other names: the kernel came to their parents before another mount moved those.
 */
static void drop_aliases(struct mfs_notify *n, uint64_t ino)
{
    uint64_t number = enqueue_new(n, (struct job){.ino = ino, .names = true});
    bool dropped;

    pthread_mutex_lock(&n->lock);
    dropped = wait_finished(n, number, ALIAS_WAIT);
    pthread_mutex_unlock(&n->lock);
    if (!dropped)
        mfs_notify_distrust(n);
}

/* Linux unmounts what is mounted on a directory whose name it forgets. Another mount is worth
 * more than the few ms for which a name may be old without this. */
static bool bears_mounts(const struct mfs_fuse *m)
{
    struct mfs_buf text;
    bool bears;

    mfs_buf_init(&text);
    bears = mfs_mountinfo_read(0, &text) < 0 || mfs_mountinfo_bears(mfs_buf_data(&text), m->device);
    mfs_buf_fini(&text);
    return bears;
}

void mfs_notify_distrust(void *arg)
{
    struct mfs_notify *n = arg;
    int rc = bears_mounts(n->m) ? 0 : mfs_device_distrust(n->m->se);

    if (rc < 0 && rc != -EINVAL && rc != -ENODEV)
        mfs_warn("fuse", "names that are to be dropped may be used: %s", strerror(-rc));
}

bool mfs_notify_revoke(void *arg, uint64_t ino, bool name, bool own, void (*done)(void *done_arg),
                       void *done_arg)
{
    static const struct mfs_dentry_key none[2] = {{0, ""}, {0, ""}};
    struct mfs_notify *n = arg;
    size_t stale = name ? mfs_nodeids_revoke(n->m->nodeids, ino, own ? served : none) : 0;

    mfs_notify_attributes(n, ino);
    if (stale == 0)
        return true;
    if (!own)
        return enqueue_new(
                   n, (struct job){.ino = ino, .names = true, .done = done, .arg = done_arg}) == 0;
    drop_aliases(n, ino);
    return true;
}
