/* Readers of `trace` wait without a thread: a read of which there is no line yet is parked, and
 * answered by the one thread here, which gathers lines for a moment, so that a reader is not woken
 * for each. */
#include <errno.h>
#include <stdlib.h>

#include <utlist.h>

#include "base/clock.h"
#include "fuse/inside/inside_impl.h"

#define GATHER (5 * MFS_MSEC)
#define MUCH   (64U << 10) /* bytes that are made ready at once … */
#define FEW    (16U << 10) /* … and of which a reader need not be woken before others have come */

struct parked {
    uint64_t unique;
    size_t size;
    struct parked *next;
};

struct mfs_stream {
    bool json;
    uint64_t at;         /* in the ring */
    struct mfs_buf text; /* made ready */
    struct parked *parked;
    struct mfs_stream *prev, *next;
};

int mfs_stream_open(struct mfs_inside *i, bool json, struct mfs_stream **stream)
{
    struct mfs_stream *s = calloc(1, sizeof *s);
    int rc;

    if (!mfs_trace_ring_is_read(i->ring)) /* what ended beside the last reader's end may be noted */
        mfs_names_forget(i->names);
    rc = s != NULL ? mfs_trace_ring_open(i->ring, &s->at) : -ENOMEM;

    if (rc < 0) {
        free(s);
        return rc;
    }
    s->json = json;
    mfs_buf_init(&s->text);
    pthread_mutex_lock(&i->lock);
    DL_APPEND(i->streams, s);
    pthread_mutex_unlock(&i->lock);
    *stream = s;
    return 0;
}

void mfs_stream_close(struct mfs_inside *i, struct mfs_stream *s)
{
    struct parked *p, *next;

    pthread_mutex_lock(&i->lock);
    DL_DELETE(i->streams, s);
    pthread_mutex_unlock(&i->lock);
    mfs_trace_ring_close(i->ring);
    if (!mfs_trace_ring_is_read(i->ring))
        mfs_names_forget(i->names);
    LL_FOREACH_SAFE(s->parked, p, next)
    free(p);
    mfs_buf_fini(&s->text);
    free(s);
}

/* Makes lines ready; without memory they are lost. */
static void gather(struct mfs_inside *i, struct mfs_stream *s)
{
    struct mfs_trace_line line;
    uint64_t lost;
    bool any = true;

    while (any && mfs_buf_len(&s->text) < MUCH) {
        any = mfs_trace_ring_take(i->ring, &s->at, &line, &lost);
        if (lost > 0)
            s->json ? mfs_trace_lost_json(lost, &s->text) : mfs_trace_lost_text(lost, &s->text);
        if (any)
            s->json ? mfs_trace_json(&line, &s->text) : mfs_trace_text(&line, &s->text);
    }
}

static void give(struct mfs_inside *i, struct mfs_stream *s, uint64_t unique, size_t size)
{
    size_t n = mfs_buf_len(&s->text) < size ? mfs_buf_len(&s->text) : size;

    mfs_inside_reply(i->m, unique, 0, mfs_buf_data(&s->text), n);
    mfs_buf_consume(&s->text, n);
}

/* Lock held. */
static void deliver(struct mfs_inside *i, struct mfs_stream *s)
{
    do {
        while (s->parked != NULL) {
            struct parked *p = s->parked;

            gather(i, s);
            if (mfs_buf_len(&s->text) == 0)
                break;
            LL_DELETE(s->parked, p);
            give(i, s, p->unique, p->size);
            free(p);
        }
    } while (s->parked != NULL && !mfs_trace_ring_want(i->ring, s->at));
}

void *mfs_stream_run(void *inside)
{
    struct mfs_inside *i = inside;
    struct mfs_stream *s;

    while (!atomic_load(&i->stop)) {
        if (sem_wait(&i->wake) < 0)
            continue;
        if (!atomic_load(&i->stop))
            mfs_clock_sleep(GATHER);
        while (sem_trywait(&i->wake) == 0)
            ;
        pthread_mutex_lock(&i->lock);
        DL_FOREACH(i->streams, s)
        deliver(i, s);
        pthread_mutex_unlock(&i->lock);
    }
    return NULL;
}

void mfs_streams_end(struct mfs_inside *i)
{
    struct mfs_stream *s;

    pthread_mutex_lock(&i->lock);
    DL_FOREACH(i->streams, s)
    while (s->parked != NULL) {
        struct parked *p = s->parked;

        LL_DELETE(s->parked, p);
        mfs_inside_reply(i->m, p->unique, 0, NULL, 0);
        free(p);
    }
    pthread_mutex_unlock(&i->lock);
}

/* Lock held: was it interrupted before it was here? */
static bool was_early(struct mfs_inside *i, uint64_t unique)
{
    for (unsigned k = 0; k < MFS_INSIDE_EARLY; k++)
        if (i->early[k] == unique)
            return true;
    return false;
}

/* Lock held; 0, or what to answer instead. */
static int park(struct mfs_inside *i, struct mfs_stream *s, uint64_t unique, size_t size)
{
    struct parked *p;

    if (was_early(i, unique))
        return -EINTR;
    p = malloc(sizeof *p);
    if (p == NULL)
        return -ENOMEM;
    *p = (struct parked){.unique = unique, .size = size};
    LL_APPEND(s->parked, p);
    if (mfs_buf_len(&s->text) > 0 || !mfs_trace_ring_want(i->ring, s->at))
        sem_post(&i->wake);
    return 0;
}

void mfs_stream_read(struct mfs_inside *i, struct mfs_stream *s, uint64_t unique, size_t size,
                     bool wait)
{
    bool left;
    int rc = 0;

    pthread_mutex_lock(&i->lock);
    left = mfs_buf_len(&s->text) > 0;
    if (!left)
        gather(i, s);
    if (wait && !left && size > 0 && !atomic_load(&i->stop) && mfs_buf_len(&s->text) < FEW)
        rc = park(i, s, unique, size);
    else if (!wait && size > 0 && !atomic_load(&i->stop) && mfs_buf_len(&s->text) == 0)
        mfs_inside_reply(i->m, unique, -EAGAIN, NULL, 0);
    else
        give(i, s, unique, size);
    if (rc < 0)
        mfs_inside_reply(i->m, unique, rc, NULL, 0);
    pthread_mutex_unlock(&i->lock);
}

/* Lock held. */
static bool interrupt(struct mfs_inside *i, struct mfs_stream *s, uint64_t unique)
{
    struct parked *p;

    LL_SEARCH_SCALAR(s->parked, p, unique, unique);
    if (p == NULL)
        return false;
    LL_DELETE(s->parked, p);
    mfs_inside_reply(i->m, unique, -EINTR, NULL, 0);
    free(p);
    return true;
}

bool mfs_stream_interrupt(struct mfs_inside *i, uint64_t unique)
{
    struct mfs_stream *s;
    bool found = false;

    pthread_mutex_lock(&i->lock);
    DL_FOREACH(i->streams, s)
    found = found || interrupt(i, s, unique);
    if (!found)
        i->early[i->nearly++ % MFS_INSIDE_EARLY] = unique;
    pthread_mutex_unlock(&i->lock);
    return found;
}
