/* A command under way: its arguments, and the answer that it failed. */
#ifndef MFS_PARTITION_REQUEST_H
#define MFS_PARTITION_REQUEST_H

#include <stdint.h>

#include "partition/span.h"

struct mfs_request {
    struct RedisModuleCtx *ctx;
    struct RedisModuleString **argv;
    int argc;
};

struct mfs_span mfs_request_arg(const struct mfs_request *r, int i); /* empty: not given */
int64_t mfs_request_int(const struct mfs_request *r, int i);
/* Has the argument just so many bytes? */
bool mfs_request_has(const struct mfs_request *r, int i, size_t n);

/* Answers with errno (store/reply.h). */
int mfs_request_fail(const struct mfs_request *r, int number, const char *text);

#endif
