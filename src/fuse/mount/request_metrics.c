/* One process has one mount, so what is under way is in lists of this file: of threads, each of
 * which serves one request at a time, and of requests that no thread serves. */
#include "fuse/mount/request_metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/fuse.h>
#include <utlist.h>

#include "base/clock.h"

static const char *const operations[MFS_OP_COUNT] = {
#define OP(name, NAME, opcode, waits) [MFS_OP_##NAME] = #name,
#include "fuse/ops.def"
#undef OP
};

enum {
    ERROR_OTHER,
#define ERROR(name) ERROR_##name,
#include "fuse/errors.def"
#undef ERROR
    ERROR_COUNT
};

static const char *const errors[ERROR_COUNT] = {
    [ERROR_OTHER] = "other",
#define ERROR(name) [ERROR_##name] = #name,
#include "fuse/errors.def"
#undef ERROR
};

static const unsigned char error_of[] = {
#define ERROR(name) [name] = ERROR_##name,
#include "fuse/errors.def"
#undef ERROR
};

static const struct mfs_metric metrics[MFS_FUSE_METRICS] = {
    [MFS_FUSE_DURATION] = {.name = "memefs_operation_duration_seconds",
                           .help = "Time from a request's arrival to its answer.",
                           .kind = MFS_METRIC_HISTOGRAM,
                           .label = {{"operation", operations, MFS_OP_COUNT}}},
    [MFS_FUSE_ERRORS] = {.name = "memefs_operation_errors_total",
                         .help = "Requests that were answered with an error.",
                         .kind = MFS_METRIC_COUNTER,
                         .label = {{"operation", operations, MFS_OP_COUNT},
                                   {"errno", errors, ERROR_COUNT}}},
    [MFS_FUSE_READ] = {.name = "memefs_read_bytes_total",
                       .help = "Bytes that programs, or the kernel's pages, have read.",
                       .kind = MFS_METRIC_COUNTER},
    [MFS_FUSE_NO_SPACE] = {.name = "memefs_no_space_total",
                           .help = "Requests that were answered with ENOSPC.",
                           .kind = MFS_METRIC_COUNTER},
    [MFS_FUSE_DATA_ERRORS] = {.name = "memefs_data_errors_total",
                              .help = "Requests that were answered with EIO.",
                              .kind = MFS_METRIC_COUNTER},
    [MFS_FUSE_LOCK_WAIT] = {.name = "memefs_lock_wait_seconds",
                            .help = "Time that requests waited for file locks.",
                            .kind = MFS_METRIC_HISTOGRAM},
    [MFS_FUSE_WRITTEN] = {.name = "memefs_written_bytes_total",
                          .help = "Bytes that programs, or the kernel's pages, have written.",
                          .kind = MFS_METRIC_COUNTER},
};

/* A thread that serves requests. Others look at `r` with the lock held, and while r.since is 0 at
 * nothing else: so the thread takes the lock to make it 0 again, and changes while it is not only
 * what is atomic, and what nobody else looks at. */
struct server {
    pthread_mutex_t lock;
    struct mfs_request r;
    struct server *prev, *next;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the next three; first */
static struct server *servers;
static struct mfs_request *detached;
static bool stopped;

static const struct mfs_request_watch *watch; /* set before the first request */

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local struct server *self;

int mfs_request_metrics_create(struct mfs_metric_set **set, struct mfs_metrics *registry)
{
    return mfs_metric_set_create(set, registry, metrics, MFS_FUSE_METRICS);
}

const char *mfs_request_name(enum mfs_fuse_op op)
{
    return operations[op];
}

static void thread_ends(void *arg)
{
    struct server *s = arg;

    pthread_mutex_lock(&list_lock);
    DL_DELETE(servers, s);
    pthread_mutex_unlock(&list_lock);
    mfs_phases_to(NULL);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void make_key(void)
{
    pthread_key_create(&key, thread_ends);
}

/* NULL: no memory. Then what the thread serves is not counted. */
static struct server *new_server(void)
{
    struct server *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    pthread_once(&once, make_key);
    pthread_mutex_init(&s->lock, NULL);
    pthread_setspecific(key, s);
    mfs_phases_to(&s->r.phases);
    pthread_mutex_lock(&list_lock);
    DL_APPEND(servers, s);
    pthread_mutex_unlock(&list_lock);
    return s;
}

static void forget(struct server *s)
{
    if (atomic_load_explicit(&s->r.since, memory_order_relaxed) == 0)
        return;
    pthread_mutex_lock(&s->lock);
    atomic_store_explicit(&s->r.since, 0, memory_order_relaxed);
    s->r.unique = 0;
    s->r.raw = NULL;
    pthread_mutex_unlock(&s->lock);
}

void mfs_request_read(const char *raw, size_t len)
{
    struct fuse_in_header in;

    if (self == NULL)
        self = new_server();
    if (self == NULL)
        return;
    forget(self); /* one that nobody has answered */
    memcpy(&in, raw, sizeof in);
    self->r.unique = in.unique;
    self->r.opcode = in.opcode;
    self->r.pid = in.pid;
    self->r.uid = in.uid;
    self->r.nodeid = in.nodeid;
    self->r.raw = raw;
    self->r.len = len;
    mfs_phases_clear(&self->r.phases);
}

void mfs_request_begin(enum mfs_fuse_op op)
{
    if (self == NULL)
        return;
    self->r.op = op;
    atomic_store_explicit(&self->r.since, mfs_clock_mono(), memory_order_release);
}

int64_t mfs_request_since(void)
{
    return self != NULL ? self->r.since : 0;
}

static unsigned error_series(enum mfs_fuse_op op, int error)
{
    bool known = (size_t)error < sizeof error_of;

    return op * ERROR_COUNT + (known ? error_of[error] : ERROR_OTHER);
}

/* Two of them once more, as figures that are there before the first one. */
static void count_error(struct mfs_metric_set *set, enum mfs_fuse_op op, int error)
{
    mfs_metric_add(set, MFS_FUSE_ERRORS, error_series(op, error), 1);
    if (error == ENOSPC)
        mfs_metric_add(set, MFS_FUSE_NO_SPACE, 0, 1);
    else if (error == EIO)
        mfs_metric_add(set, MFS_FUSE_DATA_ERRORS, 0, 1);
}

/* Programs ask any file that they open whether it is a terminal (Python's open() does): that it is
 * none is no error. */
static bool is_error(int error)
{
    return error < 0 && error != -ENOTTY;
}

/* `answer`: NULL when it is not known. */
static void count(struct mfs_metric_set *set, struct mfs_request *r, int error,
                  const struct iovec *answer, int n)
{
    int64_t now;

    if (r->since == 0)
        return;
    now = mfs_clock_mono();
    mfs_metric_observe(set, MFS_FUSE_DURATION, r->op, now - r->since);
    if (is_error(error))
        count_error(set, r->op, -error);
    if (watch != NULL && watch->wants(watch->arg, now, now - r->since))
        watch->ended(watch->arg, r, now, error, answer, n);
}

void mfs_request_answer(struct mfs_metric_set *set, const struct iovec *iov, int n)
{
    const struct fuse_out_header *out = iov[0].iov_base;

    if (out->unique == 0 || self == NULL || self->r.unique != out->unique)
        return;
    count(set, &self->r, out->error, iov, n);
    forget(self);
}

void mfs_request_extent(const struct mfs_request *r, uint64_t *offset, uint64_t *bytes)
{
    struct fuse_write_in w; /* begins as fuse_read_in does */

    *offset = r->offset;
    *bytes = r->bytes;
    if (r->raw == NULL || r->len < sizeof(struct fuse_in_header) + sizeof w ||
        (r->opcode != FUSE_READ && r->opcode != FUSE_WRITE))
        return;
    memcpy(&w, r->raw + sizeof(struct fuse_in_header), sizeof w);
    *offset = w.offset;
    *bytes = w.size;
}

void mfs_request_detach(struct mfs_request *to)
{
    memset(to, 0, sizeof *to);
    if (self == NULL)
        return;
    *to = self->r;
    mfs_request_extent(&self->r, &to->offset, &to->bytes);
    to->raw = NULL;
    forget(self);
    pthread_mutex_lock(&list_lock);
    DL_APPEND(detached, to);
    pthread_mutex_unlock(&list_lock);
}

void mfs_request_join(struct mfs_request *r)
{
    if (self == NULL)
        return;
    pthread_mutex_lock(&list_lock);
    r->phases = self->r.phases;
    pthread_mutex_unlock(&list_lock);
}

void mfs_request_waits(struct mfs_request *r, struct mfs_lock_waiter *waiter)
{
    pthread_mutex_lock(&list_lock);
    r->waiter = waiter;
    atomic_store(&r->phases.since, mfs_clock_mono());
    atomic_store(&r->phases.waits, MFS_PHASE_LOCK + 1);
    pthread_mutex_unlock(&list_lock);
}

void mfs_request_end(struct mfs_metric_set *set, struct mfs_request *r, int error)
{
    pthread_mutex_lock(&list_lock);
    if (atomic_load(&r->phases.waits) == MFS_PHASE_LOCK + 1)
        r->phases.ns[MFS_PHASE_LOCK] += mfs_clock_mono() - atomic_load(&r->phases.since);
    if (detached != NULL && r->prev != NULL) /* else there was no memory to note it */
        DL_DELETE(detached, r);
    pthread_mutex_unlock(&list_lock);
    atomic_store(&r->phases.waits, 0);
    if (r->phases.ns[MFS_PHASE_LOCK] > 0)
        mfs_metric_observe(set, MFS_FUSE_LOCK_WAIT, 0, r->phases.ns[MFS_PHASE_LOCK]);
    count(set, r, error, NULL, 0);
}

void mfs_request_each(void (*each)(void *arg, const struct mfs_request *r), void *arg)
{
    struct mfs_request *r;
    struct server *s;

    pthread_mutex_lock(&list_lock);
    DL_FOREACH(servers, s)
    {
        if (s == self || stopped)
            continue;
        pthread_mutex_lock(&s->lock);
        if (s->r.since != 0)
            each(arg, &s->r);
        pthread_mutex_unlock(&s->lock);
    }
    DL_FOREACH(detached, r)
    if (r->since != 0 && !stopped)
        each(arg, r);
    pthread_mutex_unlock(&list_lock);
}

void mfs_requests_watch(const struct mfs_request_watch *w)
{
    watch = w;
}

void mfs_requests_stop(void)
{
    pthread_mutex_lock(&list_lock);
    stopped = true;
    pthread_mutex_unlock(&list_lock);
}
