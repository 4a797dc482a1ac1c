#include "fuse/notify.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "fuse/session.h"

struct job {
    uint64_t ino;
    void (*done)(void *arg);
    void *arg;
    struct job *next;
};

struct mfs_notify {
    struct mfs_fuse *m;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the queue; a leaf */
    pthread_cond_t wake;
    struct job *first, *last;
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

/* The kernel knows the new end when it is given the last byte. */
static void tell_size(struct mfs_notify *n, uint64_t ino)
{
    struct fuse_bufvec last = FUSE_BUFVEC_INIT(1);
    uint64_t size;
    char byte;

    last.buf[0].mem = &byte;
    if (mfs_vfs_last_byte(n->m->vfs, ino, &size, &byte) == 0 && size > 0)
        fuse_lowlevel_notify_store(n->m->se, ino, (off_t)size - 1, &last, 0);
}

/* With its pages the kernel forgets attributes that it is just fetching, and a read that wanted
 * them would end at the old end of the file. So it is told the new one: after the pages are gone,
 * as those beyond the old end are zeros, and with that byte's page dropped again, as a write on
 * this mount may have changed it meanwhile. */
static void drop_pages(struct mfs_notify *n, uint64_t ino)
{
    int rc = fuse_lowlevel_notify_inval_inode(n->m->se, ino, 0, 0);

    if (rc == 0) {
        tell_size(n, ino);
        rc = fuse_lowlevel_notify_inval_inode(n->m->se, ino, 0, 0);
    }
    /* -ENOENT: the kernel has forgotten the inode, pages and all. */
    if (rc < 0 && rc != -ENOENT && rc != -ENODEV && rc != -EBADF)
        mfs_warn("fuse", "inode %llx: pages not dropped: %s", (unsigned long long)ino,
                 strerror(-rc));
}

static void *run(void *arg)
{
    struct mfs_notify *n = arg;

    pthread_mutex_lock(&n->lock);
    while (!n->stop || n->first != NULL) {
        bool ask = !n->stop;
        struct job *j;

        if (n->first == NULL) {
            mfs_cond_wait(&n->wake, &n->lock, MFS_SEC);
            pthread_mutex_unlock(&n->lock);
            mfs_retries_sweep(n->m->retries);
            pthread_mutex_lock(&n->lock);
            continue;
        }
        j = pop(n);
        pthread_mutex_unlock(&n->lock);
        if (ask)
            drop_pages(n, j->ino);
        if (j->done != NULL)
            j->done(j->arg);
        free(j);
        pthread_mutex_lock(&n->lock);
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
    pthread_mutex_destroy(&n->lock);
    free(n);
}

static bool enqueue(struct mfs_notify *n, struct job *j)
{
    bool taken;

    pthread_mutex_lock(&n->lock);
    taken = !n->stop;
    if (taken) {
        if (n->last != NULL)
            n->last->next = j;
        else
            n->first = j;
        n->last = j;
        pthread_cond_signal(&n->wake);
    }
    pthread_mutex_unlock(&n->lock);
    return taken;
}

void mfs_notify_invalidate(void *arg, uint64_t ino, void (*done)(void *done_arg), void *done_arg)
{
    struct job *j = malloc(sizeof *j);

    if (j != NULL) {
        *j = (struct job){ino, done, done_arg, NULL};
        if (enqueue(arg, j))
            return;
        free(j);
    }
    if (done != NULL)
        done(done_arg);
}
