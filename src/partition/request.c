#include "partition/request.h"

#include <stdio.h>
#include <stdlib.h>

struct mfs_span mfs_request_arg(const struct mfs_request *r, int i)
{
    return i < r->argc ? mfs_string_span(r->argv[i]) : (struct mfs_span){"", 0};
}

/* The server's strings end with NUL. */
int64_t mfs_request_int(const struct mfs_request *r, int i)
{
    return strtoll(mfs_request_arg(r, i).p, NULL, 10);
}

bool mfs_request_has(const struct mfs_request *r, int i, size_t n)
{
    return mfs_request_arg(r, i).n == n;
}

int mfs_request_fail(const struct mfs_request *r, int number, const char *text)
{
    char line[160];

    snprintf(line, sizeof line, "ERRNO %d %s", number, text);
    return mfs_redis.ReplyWithError(r->ctx, line);
}
