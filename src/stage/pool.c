#include "stage/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/threads/thread.h"

#define WAITING_MOST 16384 /* tasks of content: some 3 MiB */

struct mfs_stage_pool {
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t more, none;
    struct mfs_stage_queue any, *queue, **last; /* those that have content, in turn */
    unsigned nqueues, spread;
    struct mfs_stage_task *directory;
    unsigned long waiting, left; /* content; content and directories, those under way included */
    bool ending;
    unsigned nthreads;
    pthread_t thread[];
};

/* With the mutex held; so are the next ones. */
static void add_queue(struct mfs_stage_pool *p, struct mfs_stage_queue *q)
{
    q->next = NULL;
    *p->last = q;
    p->last = &q->next;
    p->nqueues++;
}

static struct mfs_stage_queue *take_queue(struct mfs_stage_pool *p)
{
    struct mfs_stage_queue *q = p->queue;

    p->queue = q->next;
    if (!p->queue)
        p->last = &p->queue;
    p->nqueues--;
    return q;
}

static struct mfs_stage_task *take_content(struct mfs_stage_pool *p)
{
    struct mfs_stage_queue *q;
    struct mfs_stage_task *t;

    if (!p->queue)
        return NULL;
    q = take_queue(p);
    t = q->first;
    q->first = t->next;
    if (q->first)
        add_queue(p, q);
    p->waiting--;
    return t;
}

static struct mfs_stage_task *take_directory(struct mfs_stage_pool *p)
{
    struct mfs_stage_task *t = p->directory;

    p->directory = t->next;
    return t;
}

/* NULL: nothing waits. */
static struct mfs_stage_task *take(struct mfs_stage_pool *p)
{
    return p->directory && p->nqueues < p->spread ? take_directory(p) : take_content(p);
}

/* With the mutex held, but for the time that the task takes. */
static void carry_out(struct mfs_stage_pool *p, struct mfs_stage_task *t)
{
    pthread_mutex_unlock(&p->mutex);
    t->run(t);
    pthread_mutex_lock(&p->mutex);
    if (!--p->left)
        pthread_cond_broadcast(&p->none);
}

static void *work(void *arg)
{
    struct mfs_stage_pool *p = arg;
    struct mfs_stage_task *t;

    pthread_mutex_lock(&p->mutex);
    while ((t = take(p)) || !p->ending) {
        if (t)
            carry_out(p, t);
        else
            pthread_cond_wait(&p->more, &p->mutex);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

int mfs_stage_pool_create(struct mfs_stage_pool **pool, unsigned threads)
{
    struct mfs_stage_pool *p = calloc(1, sizeof *p + threads * sizeof *p->thread);
    int rc = 0;

    if (!p)
        return -ENOMEM;
    p->last = &p->queue;
    p->spread = 1;
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->more, NULL);
    pthread_cond_init(&p->none, NULL);
    while (!rc && p->nthreads < threads) {
        rc = mfs_thread_start(&p->thread[p->nthreads], "stage", work, p);
        p->nthreads += !rc;
    }
    if (rc && p->nthreads) /* fewer will do */
        rc = 0;
    if (rc) {
        mfs_stage_pool_destroy(p);
        return rc;
    }
    *pool = p;
    return 0;
}

void mfs_stage_pool_destroy(struct mfs_stage_pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->mutex);
    p->ending = true;
    pthread_cond_broadcast(&p->more);
    pthread_mutex_unlock(&p->mutex);
    for (unsigned i = 0; i < p->nthreads; i++)
        pthread_join(p->thread[i], NULL);
    pthread_cond_destroy(&p->none);
    pthread_cond_destroy(&p->more);
    pthread_mutex_destroy(&p->mutex);
    free(p);
}

void mfs_stage_pool_spread(struct mfs_stage_pool *p, unsigned queues)
{
    p->spread = queues;
}

void mfs_stage_pool_add(struct mfs_stage_pool *p, struct mfs_stage_task *t)
{
    struct mfs_stage_queue *q = t->queue ? t->queue : &p->any;

    t->next = NULL;
    pthread_mutex_lock(&p->mutex);
    if (!q->first) {
        q->end = &q->first;
        add_queue(p, q);
    }
    *q->end = t;
    q->end = &t->next;
    p->waiting++;
    p->left++;
    pthread_cond_signal(&p->more);
    pthread_mutex_unlock(&p->mutex);
}

void mfs_stage_pool_add_directory(struct mfs_stage_pool *p, struct mfs_stage_task *t)
{
    pthread_mutex_lock(&p->mutex);
    t->next = p->directory;
    p->directory = t;
    p->left++;
    pthread_cond_signal(&p->more);
    pthread_mutex_unlock(&p->mutex);
}

void mfs_stage_pool_help(struct mfs_stage_pool *p)
{
    struct mfs_stage_task *t;

    pthread_mutex_lock(&p->mutex);
    while (p->waiting > WAITING_MOST && (t = take_content(p)))
        carry_out(p, t);
    pthread_mutex_unlock(&p->mutex);
}

void mfs_stage_pool_wait(struct mfs_stage_pool *p)
{
    pthread_mutex_lock(&p->mutex);
    while (p->left)
        pthread_cond_wait(&p->none, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
}
