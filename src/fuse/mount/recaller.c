/* Recalls that are not over are tried again and again. Invariant: `done` of each is called exactly
 * once, also when the recaller stops. */
#include "fuse/mount/recaller.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include <utlist.h>

#include "base/clock.h"
#include "base/threads/thread.h"
#include "fuse/mount/session.h"

#define AGAIN MFS_MSEC /* between two tries */

struct recall {
    uint64_t ino;
    int64_t since; /* mono */
    void (*done)(void *arg);
    void *arg;
    struct recall *prev, *next;
};

struct mfs_recaller {
    struct mfs_fuse *m;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows; a leaf */
    pthread_cond_t wake;
    struct recall *queued;
    atomic_bool stop; /* written under lock */
    bool joined;
};

static int forget(struct mfs_recaller *r, uint64_t ino)
{
    return mfs_notify_forget(r->m, ino, -1, 0);
}

/* First what may be on its way: it may be taken between the two. */
static bool is_over(struct mfs_recaller *r, const struct recall *one)
{
    enum mfs_recalls_untaken untaken = mfs_recalls_untaken(r->m->recalls, one->ino, one->since);
    int rc = forget(r, one->ino);

    return untaken == MFS_RECALLS_NONE || (untaken == MFS_RECALLS_OF_UNKNOWN && rc != -ENOENT);
}

/* Of those taken off the queue: tries each. */
static void try_all(struct mfs_recaller *r, struct recall **list, bool stop)
{
    struct recall *one, *next;

    DL_FOREACH_SAFE(*list, one, next)
    {
        if (!stop && !is_over(r, one))
            continue;
        DL_DELETE(*list, one);
        one->done(one->arg);
        free(one);
    }
}

static void *run(void *arg)
{
    struct mfs_recaller *r = arg;
    struct recall *trying = NULL;
    bool stop = false;

    while (!stop || trying != NULL) {
        pthread_mutex_lock(&r->lock);
        if (trying != NULL && r->queued == NULL && !r->stop)
            mfs_cond_wait(&r->wake, &r->lock, AGAIN);
        while (trying == NULL && r->queued == NULL && !r->stop)
            pthread_cond_wait(&r->wake, &r->lock);
        DL_CONCAT(trying, r->queued);
        r->queued = NULL;
        stop = r->stop;
        pthread_mutex_unlock(&r->lock);
        try_all(r, &trying, stop);
    }
    return NULL;
}

int mfs_recaller_create(struct mfs_recaller **out, struct mfs_fuse *m)
{
    struct mfs_recaller *r = calloc(1, sizeof *r);
    int rc;

    *out = NULL;
    if (r == NULL)
        return -ENOMEM;
    r->m = m;
    pthread_mutex_init(&r->lock, NULL);
    rc = mfs_cond_init(&r->wake);
    if (rc == 0)
        rc = mfs_thread_start(&r->thread, "recaller", run, r);
    if (rc < 0)
        free(r);
    else
        *out = r;
    return rc;
}

void mfs_recaller_stop(struct mfs_recaller *r)
{
    if (r->joined)
        return;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    r->joined = true;
}

void mfs_recaller_destroy(struct mfs_recaller *r)
{
    if (r == NULL)
        return;
    mfs_recaller_stop(r);
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* False: it has stopped. */
static bool enqueue(struct mfs_recaller *r, struct recall *one)
{
    bool taken;

    pthread_mutex_lock(&r->lock);
    taken = !r->stop;
    if (taken) {
        DL_APPEND(r->queued, one);
        pthread_cond_signal(&r->wake);
    }
    pthread_mutex_unlock(&r->lock);
    return taken;
}

static void recall_later(struct mfs_recaller *r, uint64_t ino, void (*done)(void *arg), void *arg)
{
    struct recall *one = malloc(sizeof *one);

    if (one == NULL) {
        forget(r, ino); /* better than nothing; it takes longer only where the inode goes */
        done(arg);
        return;
    }
    *one = (struct recall){.ino = ino, .since = mfs_clock_mono(), .done = done, .arg = arg};
    if (!enqueue(r, one)) {
        free(one);
        done(arg);
    }
}

void mfs_recaller_recall(void *arg, uint64_t ino, void (*done)(void *done_arg), void *done_arg)
{
    struct mfs_recaller *r = arg;
    bool any = mfs_recalls_any(r->m->recalls, ino);

    if (any && done != NULL)
        recall_later(r, ino, done, done_arg);
    else if (any && !atomic_load(&r->stop))
        forget(r, ino);
    else if (done != NULL)
        done(done_arg);
}

bool mfs_recaller_forget_acl(struct mfs_recaller *r, uint64_t ino)
{
    return mfs_recalls_take_acl(r->m->recalls, ino) && forget(r, ino) == 0;
}
