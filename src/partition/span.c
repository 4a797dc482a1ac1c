#include "partition/span.h"

#include <string.h>

bool mfs_span_is(struct mfs_span a, struct mfs_span b)
{
    return a.p && b.p && a.n == b.n && !memcmp(a.p, b.p, a.n);
}

struct mfs_span mfs_string_span(const struct RedisModuleString *s)
{
    struct mfs_span span;

    span.p = mfs_redis.StringPtrLen(s, &span.n);
    return span;
}
