/* Requests as lines (trace/line.h). */
#ifndef MFS_FUSE_INSIDE_DESCRIBE_H
#define MFS_FUSE_INSIDE_DESCRIBE_H

#include <stdint.h>
#include <sys/uio.h>

#include "fuse/mount/session.h"
#include "trace/line.h"

struct mfs_names;

/* The name that a raw request has beside its nodeid, which then is a directory; NULL: none. */
const char *mfs_describe_name(const struct mfs_request *r);

/* What its answer tells of names, for those that are to be told later. */
void mfs_describe_learn(struct mfs_names *names, const struct mfs_request *r,
                        const struct iovec *answer, int n);

/* A request as of mono time `now`. Reads nothing of /proc and takes no path: mfs_describe_names. */
struct mfs_described {
    struct mfs_trace_line line;
    uint64_t nodeid;
    uint32_t tid, holder;
    char name[256]; /* "": none */
    bool is_flock;
};
void mfs_describe(struct mfs_fuse *m, const struct mfs_request *r, int64_t now, int error,
                  const struct iovec *answer, int n, struct mfs_described *d);
/* It has not ended. */
void mfs_describe_open(struct mfs_fuse *m, const struct mfs_request *r, int64_t now,
                       struct mfs_described *d);
/* Then the rest, with no lock held. */
void mfs_describe_names(struct mfs_names *names, struct mfs_described *d);

#endif
