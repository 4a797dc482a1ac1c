/* How long requests take and how they end, and the mount's other figures.
 *
 * A request is counted when it is answered, just before the answer goes to the kernel: a program
 * that has its result finds it counted. The thread that serves a request notes it (_begin); the
 * answer that the same thread writes ends it (_answer). For one that another thread will answer the
 * serving thread takes it along (_detach), and the other one says when it does (_end). */
#ifndef MFS_FUSE_MOUNT_REQUEST_METRICS_H
#define MFS_FUSE_MOUNT_REQUEST_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/metrics.h"

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
    MFS_FUSE_METRICS
};

/* A request that is being served. */
struct mfs_request {
    uint64_t unique; /* the kernel's number; 0: none */
    enum mfs_fuse_op op;
    int64_t since; /* mono */
};

int mfs_request_metrics_create(struct mfs_metric_set **set, struct mfs_metrics *registry);

/* The calling thread has read the request of that number … */
void mfs_request_read(uint64_t unique);
/* … and begins to serve it, as this operation. */
void mfs_request_begin(enum mfs_fuse_op op);
/* Has the calling thread's answer to a request counted, if it is that which it serves. `error` is
 * the answer's: 0 or -errno. */
void mfs_request_answer(struct mfs_metric_set *set, uint64_t unique, int error);

int64_t mfs_request_since(void); /* when that which the calling thread serves began, mono */

struct mfs_request mfs_request_detach(void); /* the calling thread's answer does not count it */
void mfs_request_end(struct mfs_metric_set *set, const struct mfs_request *r, int error);

#endif
