/* Errands: each is a worker of its own with one job. A worker whose job has finished has nothing
 * left to wait for, so that ending it takes no time. */
#include "lm/jobs/errand.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

struct errand {
    struct mfs_errands *owner;
    struct mfs_worker *worker;
    struct mfs_watch *watch;
    struct errand *next;
};

struct mfs_errands {
    struct mfs_loop *loop;
    struct errand *first;
};

struct mfs_errands *mfs_errands_create(struct mfs_loop *loop)
{
    struct mfs_errands *es = calloc(1, sizeof *es);

    if (es)
        es->loop = loop;
    return es;
}

static void finish(struct errand *e)
{
    struct errand **at = &e->owner->first;

    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    mfs_watch_remove(e->watch);
    mfs_worker_destroy(e->worker); /* calls `done`, which may run another errand */
    free(e);
}

static void finished(void *arg, uint32_t events)
{
    (void)events;
    finish(arg);
}

int mfs_errand_run(struct mfs_errands *es, const char *name, struct mfs_job *job)
{
    struct errand *e = calloc(1, sizeof *e);
    int rc;

    if (!e)
        return -ENOMEM;
    e->owner = es;
    rc = mfs_worker_create(&e->worker, name);
    if (rc)
        goto out;
    e->watch = mfs_loop_watch(es->loop, mfs_worker_fd(e->worker), EPOLLIN, finished, e);
    if (!e->watch) {
        rc = -errno;
        goto out;
    }
    e->next = es->first;
    es->first = e;
    mfs_worker_submit(e->worker, job);
    return 0;
out:
    mfs_worker_destroy(e->worker);
    free(e);
    return rc;
}

void mfs_errands_destroy(struct mfs_errands *es)
{
    if (!es)
        return;
    while (es->first)
        finish(es->first);
    free(es);
}
