/* Line number i is at i % size; those from next - size on are there. */
#include "trace/ring.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct mfs_trace_ring {
    uint32_t size;
    void (*wake)(void *arg);
    void *arg;
    atomic_uint readers;  /* changed with the lock held */
    pthread_mutex_t lock; /* guards what follows */
    struct mfs_trace_line *line;
    uint64_t next;
    bool wanted;
};

struct mfs_trace_ring *mfs_trace_ring_create(uint32_t size, void (*wake)(void *arg), void *arg)
{
    struct mfs_trace_ring *r = calloc(1, sizeof *r);

    if (r == NULL)
        return NULL;
    pthread_mutex_init(&r->lock, NULL);
    r->size = size;
    r->wake = wake;
    r->arg = arg;
    return r;
}

void mfs_trace_ring_destroy(struct mfs_trace_ring *r)
{
    if (r == NULL)
        return;
    pthread_mutex_destroy(&r->lock);
    free(r->line);
    free(r);
}

int mfs_trace_ring_open(struct mfs_trace_ring *r, uint64_t *at)
{
    int rc = 0;

    pthread_mutex_lock(&r->lock);
    if (r->line == NULL)
        r->line = malloc(r->size * sizeof *r->line);
    if (r->line == NULL)
        rc = -ENOMEM;
    else
        atomic_fetch_add(&r->readers, 1);
    *at = r->next;
    pthread_mutex_unlock(&r->lock);
    return rc;
}

void mfs_trace_ring_close(struct mfs_trace_ring *r)
{
    pthread_mutex_lock(&r->lock);
    if (atomic_fetch_sub(&r->readers, 1) == 1) {
        free(r->line);
        r->line = NULL;
        r->wanted = false;
    }
    pthread_mutex_unlock(&r->lock);
}

bool mfs_trace_ring_is_read(const struct mfs_trace_ring *r)
{
    return atomic_load_explicit(&r->readers, memory_order_relaxed) > 0;
}

void mfs_trace_ring_put(struct mfs_trace_ring *r, const struct mfs_trace_line *l)
{
    pthread_mutex_lock(&r->lock);
    if (r->line != NULL) {
        r->line[r->next++ % r->size] = *l;
        if (r->wanted)
            r->wake(r->arg);
        r->wanted = false;
    }
    pthread_mutex_unlock(&r->lock);
}

bool mfs_trace_ring_take(struct mfs_trace_ring *r, uint64_t *at, struct mfs_trace_line *l,
                         uint64_t *lost)
{
    bool any;

    pthread_mutex_lock(&r->lock);
    *lost = r->next > *at + r->size ? r->next - r->size - *at : 0;
    *at += *lost;
    any = *at < r->next;
    if (any)
        *l = r->line[(*at)++ % r->size];
    pthread_mutex_unlock(&r->lock);
    return any;
}

bool mfs_trace_ring_want(struct mfs_trace_ring *r, uint64_t at)
{
    bool none;

    pthread_mutex_lock(&r->lock);
    none = at >= r->next;
    r->wanted = r->wanted || none;
    pthread_mutex_unlock(&r->lock);
    return none;
}
