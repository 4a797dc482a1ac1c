/* The worker thread: two lists under one mutex, an eventfd towards the loop. */
#include "lm/jobs/worker.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/threads/thread.h"

struct queue {
    struct mfs_job *head, **tail;
};

struct mfs_worker {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct queue todo, finished; /* mutex */
    bool stop;                   /* mutex */
    int event;
    uint32_t pending; /* the loop's */
};

static void queue_init(struct queue *q)
{
    q->head = NULL;
    q->tail = &q->head;
}

static void queue_push(struct queue *q, struct mfs_job *job)
{
    job->next = NULL;
    *q->tail = job;
    q->tail = &job->next;
}

static struct mfs_job *queue_pop(struct queue *q)
{
    struct mfs_job *job = q->head;

    if (job) {
        q->head = job->next;
        if (!q->head)
            q->tail = &q->head;
    }
    return job;
}

static struct mfs_job *next_job(struct mfs_worker *w)
{
    struct mfs_job *job;

    pthread_mutex_lock(&w->mutex);
    while (!(job = queue_pop(&w->todo)) && !w->stop)
        pthread_cond_wait(&w->wake, &w->mutex);
    pthread_mutex_unlock(&w->mutex);
    return job;
}

static void *work(void *arg)
{
    struct mfs_worker *w = arg;
    struct mfs_job *job;

    while ((job = next_job(w))) {
        job->run(job);
        pthread_mutex_lock(&w->mutex);
        queue_push(&w->finished, job);
        pthread_mutex_unlock(&w->mutex);
        eventfd_write(w->event, 1);
    }
    return NULL;
}

int mfs_worker_create(struct mfs_worker **out, const char *name)
{
    struct mfs_worker *w = calloc(1, sizeof *w);
    int rc;

    if (!w)
        return -ENOMEM;
    queue_init(&w->todo);
    queue_init(&w->finished);
    pthread_mutex_init(&w->mutex, NULL);
    mfs_cond_init(&w->wake);
    w->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    rc = w->event < 0 ? -errno : mfs_thread_start(&w->thread, name, work, w);
    if (!rc) {
        *out = w;
        return 0;
    }
    if (w->event >= 0)
        close(w->event);
    free(w);
    return rc;
}

int mfs_worker_fd(const struct mfs_worker *w)
{
    return w->event;
}

void mfs_worker_submit(struct mfs_worker *w, struct mfs_job *job)
{
    w->pending++;
    pthread_mutex_lock(&w->mutex);
    queue_push(&w->todo, job);
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->mutex);
}

void mfs_worker_collect(struct mfs_worker *w)
{
    struct mfs_job *job;
    eventfd_t count;

    eventfd_read(w->event, &count);
    for (;;) {
        pthread_mutex_lock(&w->mutex);
        job = queue_pop(&w->finished);
        pthread_mutex_unlock(&w->mutex);
        if (!job)
            return;
        w->pending--;
        job->done(job);
    }
}

uint32_t mfs_worker_pending(const struct mfs_worker *w)
{
    return w->pending;
}

void mfs_worker_destroy(struct mfs_worker *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->mutex);
    w->stop = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->mutex);
    pthread_join(w->thread, NULL);
    mfs_worker_collect(w);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->mutex);
    close(w->event);
    free(w);
}
