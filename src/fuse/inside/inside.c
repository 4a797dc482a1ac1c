#include "fuse/inside/inside.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/threads/thread.h"
#include "client/client.h"
#include "fuse/inside/describe.h"
#include "fuse/inside/inside_impl.h"

#define LINES 4096U /* that a reader of `trace` may be behind */

/* Nothing is taken here: a ring's lock is held. */
static void wake(void *arg)
{
    struct mfs_inside *i = arg;

    sem_post(&i->wake);
}

static bool wants(void *arg, int64_t now, int64_t took)
{
    const struct mfs_inside *i = arg;

    return took >= i->opts.slow || mfs_trace_ring_is_read(i->ring) || mfs_hot_is_due(i->hot, now);
}

static void ended(void *arg, const struct mfs_request *r, int64_t now, int error,
                  const struct iovec *answer, int n)
{
    struct mfs_inside *i = arg;
    bool sample = mfs_hot_is_due(i->hot, now);
    struct mfs_described d;

    if (mfs_trace_ring_is_read(i->ring))
        mfs_describe_learn(i->names, r, answer, n);
    mfs_describe(i->m, r, now, error, answer, n, &d);
    mfs_describe_names(i->names, &d);
    if (now - r->since >= i->opts.slow)
        mfs_slow_add(i->slow, &d.line);
    mfs_trace_ring_put(i->ring, &d.line);
    if (sample)
        mfs_hot_add(i->hot, &d.line, now);
}

static bool tell_hot(void *arg, struct mfs_hot *to)
{
    struct mfs_inside *i = arg;

    return mfs_hot_take(i->hot, mfs_clock_mono(), MFS_HOT_TOLD, to) == 0;
}

static int start(struct mfs_inside *i)
{
    int rc;

    i->names = mfs_names_create(i->m->nodeids, mfs_vfs_meta(i->m->vfs), i->opts.path);
    i->slow = mfs_slow_create();
    i->ring = mfs_trace_ring_create(LINES, wake, i);
    i->hot = mfs_hot_create();
    if (i->names == NULL || i->slow == NULL || i->ring == NULL || i->hot == NULL)
        return -ENOMEM;
    mfs_client_on_hot(i->m->client, tell_hot, i);
    if (!i->opts.files)
        return 0;
    rc = mfs_thread_start(&i->thread, "trace", mfs_stream_run, i);
    i->started = rc == 0;
    return rc;
}

int mfs_inside_create(struct mfs_fuse *m, const struct mfs_inside_opts *opts)
{
    struct mfs_inside *i = calloc(1, sizeof *i);

    if (i == NULL)
        return -ENOMEM;
    i->m = m;
    i->opts = *opts;
    if (i->opts.slow == 0)
        i->opts.slow = INT64_MAX;
    i->uid = geteuid();
    i->gid = getegid();
    pthread_mutex_init(&i->lock, NULL);
    sem_init(&i->wake, 0, 0);
    mfs_buf_init(&i->clients.text);
    mfs_buf_init(&i->events.text);
    m->inside = i;
    if (opts->files) {
        m->serve_inside = mfs_inside_serve;
        m->urgency_inside = mfs_inside_urgency;
    }
    i->watch = (struct mfs_request_watch){wants, ended, i};
    mfs_requests_watch(&i->watch);
    return start(i);
}

void mfs_inside_stop(struct mfs_fuse *m)
{
    struct mfs_inside *i = m->inside;

    if (i == NULL)
        return;
    mfs_requests_stop();
    atomic_store(&i->stop, true);
    if (!i->started)
        return;
    sem_post(&i->wake);
    pthread_join(i->thread, NULL);
    i->started = false;
    mfs_streams_end(i);
}

void mfs_inside_destroy(struct mfs_fuse *m)
{
    struct mfs_inside *i = m->inside;

    if (i == NULL)
        return;
    mfs_inside_stop(m);
    mfs_requests_watch(NULL);
    m->serve_inside = NULL;
    mfs_inside_close_all(m);
    mfs_buf_fini(&i->clients.text);
    mfs_buf_fini(&i->events.text);
    mfs_trace_ring_destroy(i->ring);
    mfs_hot_destroy(i->hot);
    mfs_slow_destroy(i->slow);
    mfs_names_destroy(i->names);
    sem_destroy(&i->wake);
    pthread_mutex_destroy(&i->lock);
    free(i);
    m->inside = NULL;
}
