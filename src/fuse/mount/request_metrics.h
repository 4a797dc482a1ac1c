/* Requests: which are under way, how long they take and how they end; and the mount's other
 * figures.
 *
 * A request is counted when it is answered, just before the answer goes to the kernel: a program
 * that has its result finds it counted. The thread that serves a request notes it (_begin); the
 * answer that the same thread writes ends it (_answer). For one that another thread will answer the
 * serving thread takes it along (_detach), and the other one says when it does (_end). Whoever
 * wants to see what is under way goes through all of them (_each). */
#ifndef MFS_FUSE_MOUNT_REQUEST_METRICS_H
#define MFS_FUSE_MOUNT_REQUEST_METRICS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/metrics.h"
#include "base/phases.h"

struct mfs_lock_waiter;

enum mfs_fuse_op {
#define OP(name, NAME, opcode, waits) MFS_OP_##NAME,
#include "fuse/ops.def"
#undef OP
    MFS_OP_COUNT
};

enum mfs_fuse_metric {
    MFS_FUSE_DURATION, /* series: enum mfs_fuse_op */
    MFS_FUSE_ERRORS,   /* of each operation: by errno */
    MFS_FUSE_READ,     /* bytes that READ and WRITE brought */
    MFS_FUSE_WRITTEN,
    MFS_FUSE_NO_SPACE, /* of the errors */
    MFS_FUSE_DATA_ERRORS,
    MFS_FUSE_LOCK_WAIT,
    MFS_FUSE_METRICS
};

/* A request that is being served. */
struct mfs_request {
    uint64_t unique; /* the kernel's number; 0: none */
    enum mfs_fuse_op op;
    _Atomic int64_t since; /* mono; 0: not yet, and nobody else looks at it */
    uint32_t opcode, pid, uid;
    uint64_t nodeid;
    const char *raw; /* as it came, while the thread that it came to serves it; else NULL */
    size_t len;
    uint64_t offset, bytes; /* of READ and WRITE, when `raw` is NULL */
    struct mfs_phases phases;
    struct mfs_lock_waiter *waiter;  /* of one that waits for a lock */
    struct mfs_request *prev, *next; /* of the detached ones */
};

/* Who wants to know of requests when they end. */
struct mfs_request_watch {
    /* Of one that ends at mono time `now`, and took so many ns? Quick. */
    bool (*wants)(void *arg, int64_t now, int64_t took);
    /* It is so: by the thread that answers. *answer is that, NULL when it is not known. */
    void (*ended)(void *arg, const struct mfs_request *r, int64_t now, int error,
                  const struct iovec *answer, int n);
    void *arg;
};

/* Before the first request, or when there are no more. *w must stay; NULL: nobody. */
void mfs_requests_watch(const struct mfs_request_watch *w);

int mfs_request_metrics_create(struct mfs_metric_set **set, struct mfs_metrics *registry);
const char *mfs_request_name(enum mfs_fuse_op op);

/* The calling thread has read a request, which stays where it is until that is answered … */
void mfs_request_read(const char *raw, size_t len);
/* … and begins to serve it, as this operation. */
void mfs_request_begin(enum mfs_fuse_op op);
/* Has the calling thread's answer counted, if it is that to the request that it serves. */
void mfs_request_answer(struct mfs_metric_set *set, const struct iovec *iov, int count);

int64_t mfs_request_since(void); /* when that which the calling thread serves began, mono */

/* What READ or WRITE is of; 0 of another one. */
void mfs_request_extent(const struct mfs_request *r, uint64_t *offset, uint64_t *bytes);

/* The calling thread's answer does not count the request; *to, which stays until mfs_request_end,
 * has it from now on. */
void mfs_request_detach(struct mfs_request *to);
/* What the thread has waited for since is the request's, too. */
void mfs_request_join(struct mfs_request *r);
/* From now on it waits for a lock. The waiter must stay until the end. */
void mfs_request_waits(struct mfs_request *r, struct mfs_lock_waiter *waiter);
void mfs_request_end(struct mfs_metric_set *set, struct mfs_request *r, int error);

/* Calls `each` for every request under way, which can't end meanwhile: not to be called from one's
 * own, nor for long. */
void mfs_request_each(void (*each)(void *arg, const struct mfs_request *r), void *arg);
void mfs_requests_stop(void); /* from now on for none: waiters may go before their requests end */

#endif
