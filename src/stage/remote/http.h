/* Requests by HTTP that block their thread, each tried again a bounded number of times where that
 * may help. libcurl is loaded when the first one is made: a mounted client, the same program, does
 * not pay for it. Any thread. Source: libcurl-easy(3). */
#ifndef MFS_STAGE_REMOTE_HTTP_H
#define MFS_STAGE_REMOTE_HTTP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "aws/key.h"
#include "base/buf.h"
#include "base/err.h"

#define MFS_STAGE_HEADERS 6

struct mfs_stage_http_call {
    const char *method; /* "GET", "HEAD", "PUT", "POST", "DELETE" */
    const char *url;
    const struct mfs_aws_key *key; /* signs it, version 4; NULL: not signed */
    const char *region;            /* with a key */
    const char *header[MFS_STAGE_HEADERS];
    const atomic_bool *stop; /* -EINTR when it is set */

    bool ranged; /* GET of [lo, hi), which a server that knows ranges has */
    uint64_t lo, hi;
    bool resumes; /* the server knows ranges: what broke off goes on from there */
    /* Takes what comes, from `lo` on and in order; p is NULL when all comes once more. 0 or a
     * negative errno, which ends the call. NULL: into `text`. */
    int (*sink)(void *arg, const char *p, size_t n);
    void *arg;

    int body; /* PUT: a descriptor, its bytes [body_at, body_at + body_len) */
    uint64_t body_at, body_len;
    const char *post; /* POST: a text */

    /* The answer; "" and 0 for what it does not tell. */
    long status;
    char etag[160], range[80], mtime[40], mode[16], bucket_region[40];
    int64_t modified; /* s since 1970 */
    bool has_length, ranges;
    uint64_t length;
    struct mfs_buf text; /* to be ended by the caller */
};

/* 0: the status is 2xx. -ENOENT, -EACCES, -ESTALE (it is another one now), -EAGAIN (tried in vain),
 * -EIO, -EINTR, -ENOTSUP (no libcurl), or the sink's, with the reason. */
int mfs_stage_http(struct mfs_stage_http_call *c, struct mfs_err *err);

/* Appends the text, percent-encoded; "/" stays, where `path`. 0 or -ENOMEM. */
int mfs_stage_encode(struct mfs_buf *to, const char *text, bool path);

#endif
