/* Each thread is a worker of its own with one job. A worker whose job has finished has nothing
 * left to wait for, so that ending it takes no time. */
#include "lm/jobs/job_threads.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

struct job_thread {
    struct mfs_job_threads *owner;
    struct mfs_worker *worker;
    struct mfs_watch *watch;
    struct job_thread *next;
};

struct mfs_job_threads {
    struct mfs_loop *loop;
    struct job_thread *first;
};

struct mfs_job_threads *mfs_job_threads_create(struct mfs_loop *loop)
{
    struct mfs_job_threads *es = calloc(1, sizeof *es);

    if (es)
        es->loop = loop;
    return es;
}

static void finish(struct job_thread *e)
{
    struct job_thread **at = &e->owner->first;

    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    mfs_watch_remove(e->watch);
    mfs_worker_destroy(e->worker); /* calls `done`, which may run another job */
    free(e);
}

static void finished(void *arg, uint32_t events)
{
    (void)events;
    finish(arg);
}

int mfs_job_threads_run(struct mfs_job_threads *es, const char *name, struct mfs_job *job)
{
    struct job_thread *e = calloc(1, sizeof *e);
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

void mfs_job_threads_destroy(struct mfs_job_threads *es)
{
    if (!es)
        return;
    while (es->first)
        finish(es->first);
    free(es);
}
