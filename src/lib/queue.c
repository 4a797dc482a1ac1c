/* A queue of asynchronous requests: threads of its own serve them one by one, each by the call that
 * a program would make. A request is waiting, being served, or done, and its place is free again
 * when the program has reaped it; `taken` counts all three. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utlist.h>

#include "base/clock.h"
#include "base/threads/thread.h"
#include "lib/objects.h"

#define DEPTH_MOST   65536U
#define THREADS_MOST 256U

struct request;
typedef int64_t serve_fn(struct memefs *fs, struct request *r);

struct request {
    serve_fn *serve;
    struct memefs_file *file;
    char *path; /* heap */
    void *buf;
    const void *bytes;
    size_t len;
    off_t off;
    unsigned flags;
    void *data;
    int64_t result;
    struct request *prev, *next;
};

struct memefs_queue {
    struct memefs *fs;
    unsigned depth;
    int event; /* readable while done is not empty */
    unsigned nthreads;
    pthread_t *thread;
    pthread_mutex_t lock; /* guards what follows; a leaf */
    pthread_cond_t wake, reaped;
    struct request *waiting, *done;
    unsigned taken, ndone;
    bool stop;
};

static void request_free(struct request *r)
{
    free(r->path);
    free(r);
}

/* --- serving ---------------------------------------------------------------------------------- */

static int64_t serve_put(struct memefs *fs, struct request *r)
{
    return mfs_lib_put(fs, r->path, r->bytes, r->len, r->flags);
}

static int64_t serve_get(struct memefs *fs, struct request *r)
{
    return mfs_lib_get(fs, r->path, r->buf, r->len, NULL);
}

static int64_t serve_mput(struct memefs *fs, struct request *r)
{
    return memefs_mput(fs, r->buf, r->len, r->flags);
}

static int64_t serve_mget(struct memefs *fs, struct request *r)
{
    return memefs_mget(fs, r->buf, r->len);
}

static int64_t serve_stat(struct memefs *fs, struct request *r)
{
    return memefs_fstatat(fs, NULL, r->path, r->buf, (int)r->flags);
}

static int64_t serve_pread(struct memefs *fs, struct request *r)
{
    (void)fs;
    return memefs_pread(r->file, r->buf, r->len, r->off);
}

static int64_t serve_pwrite(struct memefs *fs, struct request *r)
{
    (void)fs;
    return memefs_pwrite(r->file, r->bytes, r->len, r->off);
}

static int64_t serve_fsync(struct memefs *fs, struct request *r)
{
    (void)fs;
    return memefs_fsync(r->file);
}

static void tell(const struct memefs_queue *q)
{
    const uint64_t one = 1;

    if (write(q->event, &one, sizeof one) < 0)
        return; /* it is at its most, and readable */
}

static void *run(void *arg)
{
    struct memefs_queue *q = arg;
    struct request *r;

    pthread_mutex_lock(&q->lock);
    while (!q->stop) {
        r = q->waiting;
        if (r == NULL) {
            mfs_cond_wait(&q->wake, &q->lock, 60 * MFS_SEC);
            continue;
        }
        DL_DELETE(q->waiting, r);
        pthread_mutex_unlock(&q->lock);
        r->result = r->serve(q->fs, r);
        pthread_mutex_lock(&q->lock);
        DL_APPEND(q->done, r);
        if (q->ndone++ == 0)
            tell(q);
        pthread_cond_broadcast(&q->reaped);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* --- the queue -------------------------------------------------------------------------------- */

static void stop(struct memefs_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->stop = true;
    pthread_cond_broadcast(&q->wake);
    pthread_mutex_unlock(&q->lock);
    for (unsigned i = 0; i < q->nthreads; i++)
        pthread_join(q->thread[i], NULL);
}

static void free_all(struct request *list)
{
    struct request *r, *next;

    DL_FOREACH_SAFE(list, r, next)
    request_free(r);
}

static void destroy(struct memefs_queue *q)
{
    stop(q);
    atomic_fetch_sub(&q->fs->queues, 1);
    free_all(q->waiting);
    free_all(q->done);
    if (q->event >= 0)
        close(q->event);
    free(q->thread);
    pthread_cond_destroy(&q->wake);
    pthread_cond_destroy(&q->reaped);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

static int create(struct memefs *fs, unsigned depth, unsigned threads, struct memefs_queue **queue)
{
    struct memefs_queue *q = calloc(1, sizeof *q);
    int rc = 0;

    if (q == NULL)
        return -ENOMEM;
    q->fs = fs;
    q->depth = depth;
    pthread_mutex_init(&q->lock, NULL);
    mfs_cond_init(&q->wake);
    mfs_cond_init(&q->reaped);
    q->thread = calloc(threads, sizeof *q->thread);
    q->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (q->thread == NULL)
        rc = -ENOMEM;
    else if (q->event < 0)
        rc = -errno;
    while (rc == 0 && q->nthreads < threads) {
        rc = mfs_thread_start(&q->thread[q->nthreads], "mfs-queue", run, q);
        q->nthreads += rc == 0;
    }
    atomic_fetch_add(&fs->queues, 1);
    if (rc < 0)
        destroy(q);
    else
        *queue = q;
    return rc;
}

int memefs_queue_create(struct memefs *fs, unsigned depth, unsigned threads,
                        struct memefs_queue **queue)
{
    int rc = mfs_lib_enter(fs);

    if (queue != NULL)
        *queue = NULL;
    if (rc == 0 && (queue == NULL || depth == 0 || depth > DEPTH_MOST || threads == 0 ||
                    threads > THREADS_MOST))
        rc = -EINVAL;
    if (rc == 0)
        rc = create(fs, depth, threads, queue);
    return (int)mfs_lib_end(rc, "queue_create", NULL);
}

/* In a process that was forked there are no threads to join. */
void memefs_queue_destroy(struct memefs_queue *queue)
{
    if (queue != NULL && mfs_lib_enter(queue->fs) == 0)
        destroy(queue);
}

int memefs_queue_fd(struct memefs_queue *queue)
{
    return queue != NULL ? queue->event : -EINVAL;
}

/* --- requests --------------------------------------------------------------------------------- */

static int submit(struct memefs_queue *q, const struct request *given, const char *path)
{
    struct request *r;
    int rc = 0;

    r = malloc(sizeof *r);
    if (r == NULL)
        return -ENOMEM;
    *r = *given;
    r->path = path != NULL ? strdup(path) : NULL;
    if (path != NULL && r->path == NULL)
        rc = -ENOMEM;
    pthread_mutex_lock(&q->lock);
    if (rc == 0 && q->taken == q->depth)
        rc = -EAGAIN;
    if (rc == 0) {
        q->taken++;
        DL_APPEND(q->waiting, r);
        pthread_cond_signal(&q->wake);
    }
    pthread_mutex_unlock(&q->lock);
    if (rc < 0)
        request_free(r);
    return rc;
}

static int check(const struct memefs_queue *q, bool good)
{
    int rc = q != NULL ? mfs_lib_enter(q->fs) : -EINVAL;

    return rc == 0 && !good ? -EINVAL : rc;
}

int memefs_queue_put(struct memefs_queue *queue, const char *path, const void *buf, size_t len,
                     unsigned flags, void *data)
{
    const struct request r = {
        .serve = serve_put, .bytes = buf, .len = len, .flags = flags, .data = data};
    int rc = check(queue, path != NULL);

    if (rc == 0)
        rc = submit(queue, &r, path);
    return (int)mfs_lib_end(rc, "queue_put", path);
}

int memefs_queue_get(struct memefs_queue *queue, const char *path, void *buf, size_t size,
                     void *data)
{
    const struct request r = {.serve = serve_get, .buf = buf, .len = size, .data = data};
    int rc = check(queue, path != NULL);

    if (rc == 0)
        rc = submit(queue, &r, path);
    return (int)mfs_lib_end(rc, "queue_get", path);
}

int memefs_queue_mput(struct memefs_queue *queue, struct memefs_item *items, size_t n,
                      unsigned flags, void *data)
{
    const struct request r = {
        .serve = serve_mput, .buf = items, .len = n, .flags = flags, .data = data};
    int rc = check(queue, items != NULL || n == 0);

    if (rc == 0)
        rc = submit(queue, &r, NULL);
    return (int)mfs_lib_end(rc, "queue_mput", NULL);
}

int memefs_queue_mget(struct memefs_queue *queue, struct memefs_item *items, size_t n, void *data)
{
    const struct request r = {.serve = serve_mget, .buf = items, .len = n, .data = data};
    int rc = check(queue, items != NULL || n == 0);

    if (rc == 0)
        rc = submit(queue, &r, NULL);
    return (int)mfs_lib_end(rc, "queue_mget", NULL);
}

int memefs_queue_stat(struct memefs_queue *queue, const char *path, struct stat *st, int at_flags,
                      void *data)
{
    const struct request r = {
        .serve = serve_stat, .buf = st, .flags = (unsigned)at_flags, .data = data};
    int rc = check(queue, path != NULL && st != NULL);

    if (rc == 0)
        rc = submit(queue, &r, path);
    return (int)mfs_lib_end(rc, "queue_stat", path);
}

int memefs_queue_pread(struct memefs_queue *queue, struct memefs_file *file, void *buf, size_t len,
                       off_t off, void *data)
{
    const struct request r = {
        .serve = serve_pread, .file = file, .buf = buf, .len = len, .off = off, .data = data};
    int rc = check(queue, file != NULL && queue != NULL && file->fs == queue->fs);

    if (rc == 0)
        rc = submit(queue, &r, NULL);
    return (int)mfs_lib_end(rc, "queue_pread", NULL);
}

int memefs_queue_pwrite(struct memefs_queue *queue, struct memefs_file *file, const void *buf,
                        size_t len, off_t off, void *data)
{
    const struct request r = {
        .serve = serve_pwrite, .file = file, .bytes = buf, .len = len, .off = off, .data = data};
    int rc = check(queue, file != NULL && queue != NULL && file->fs == queue->fs);

    if (rc == 0)
        rc = submit(queue, &r, NULL);
    return (int)mfs_lib_end(rc, "queue_pwrite", NULL);
}

int memefs_queue_fsync(struct memefs_queue *queue, struct memefs_file *file, void *data)
{
    const struct request r = {.serve = serve_fsync, .file = file, .data = data};
    int rc = check(queue, file != NULL && queue != NULL && file->fs == queue->fs);

    if (rc == 0)
        rc = submit(queue, &r, NULL);
    return (int)mfs_lib_end(rc, "queue_fsync", NULL);
}

/* --- completions ------------------------------------------------------------------------------ */

/* No more than are under way can come. The lock is held. */
static void wait_for(struct memefs_queue *q, unsigned least, int wait_ms)
{
    int64_t end = mfs_clock_mono() + wait_ms * MFS_MSEC;

    while (q->ndone < least && q->ndone < q->taken) {
        int64_t left = wait_ms < 0 ? MFS_SEC : end - mfs_clock_mono();

        if (left <= 0)
            break;
        mfs_cond_wait(&q->reaped, &q->lock, left);
    }
}

static unsigned take(struct memefs_queue *q, struct memefs_completion *done, unsigned most)
{
    unsigned n = 0;
    uint64_t count;

    assert(done != NULL);
    while (n < most && q->done != NULL) {
        struct request *r = q->done;

        DL_DELETE(q->done, r);
        done[n++] = (struct memefs_completion){r->data, r->result};
        request_free(r);
        q->ndone--;
        q->taken--;
    }
    if (q->ndone == 0 && read(q->event, &count, sizeof count) < 0)
        return n; /* it was not readable */
    return n;
}

int memefs_queue_reap(struct memefs_queue *queue, struct memefs_completion *done, unsigned most,
                      unsigned least, int wait_ms)
{
    int n = check(queue, done != NULL && most > 0 && most <= INT32_MAX && least <= most);

    if (n < 0)
        return (int)mfs_lib_end(n, "queue_reap", NULL);
    pthread_mutex_lock(&queue->lock);
    wait_for(queue, least, wait_ms);
    n = (int)take(queue, done, most);
    pthread_mutex_unlock(&queue->lock);
    return n;
}
