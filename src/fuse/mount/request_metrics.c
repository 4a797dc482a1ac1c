#include "fuse/mount/request_metrics.h"

#include <errno.h>

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
    [MFS_FUSE_WRITTEN] = {.name = "memefs_written_bytes_total",
                          .help = "Bytes that programs, or the kernel's pages, have written.",
                          .kind = MFS_METRIC_COUNTER},
};

static _Thread_local struct mfs_request serving;

int mfs_request_metrics_create(struct mfs_metric_set **set, struct mfs_metrics *registry)
{
    return mfs_metric_set_create(set, registry, metrics, MFS_FUSE_METRICS);
}

void mfs_request_read(uint64_t unique)
{
    serving = (struct mfs_request){.unique = unique};
}

void mfs_request_begin(enum mfs_fuse_op op)
{
    serving.op = op;
    serving.since = mfs_clock_mono();
}

int64_t mfs_request_since(void)
{
    return serving.since;
}

static unsigned error_series(enum mfs_fuse_op op, int error)
{
    bool known = (size_t)error < sizeof error_of;

    return op * ERROR_COUNT + (known ? error_of[error] : ERROR_OTHER);
}

void mfs_request_end(struct mfs_metric_set *set, const struct mfs_request *r, int error)
{
    if (r->since == 0)
        return;
    mfs_metric_observe(set, MFS_FUSE_DURATION, r->op, mfs_clock_mono() - r->since);
    if (error < 0)
        mfs_metric_add(set, MFS_FUSE_ERRORS, error_series(r->op, -error), 1);
}

void mfs_request_answer(struct mfs_metric_set *set, uint64_t unique, int error)
{
    if (unique == 0 || serving.unique != unique)
        return;
    mfs_request_end(set, &serving, error);
    serving.unique = 0;
}

struct mfs_request mfs_request_detach(void)
{
    struct mfs_request r = serving;

    serving.unique = 0;
    return r;
}
