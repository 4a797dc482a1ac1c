/* Bytes that another owns: of the server's strings, of a key, of the journal. */
#ifndef MFS_PARTITION_SPAN_H
#define MFS_PARTITION_SPAN_H

#include <stdbool.h>
#include <stddef.h>

#include "partition/redis.h"

struct mfs_span {
    const char *p; /* NULL: there is none */
    size_t n;
};

/* Are both there, with the same bytes? */
bool mfs_span_is(struct mfs_span a, struct mfs_span b);

struct mfs_span mfs_string_span(const struct RedisModuleString *s);

#endif
