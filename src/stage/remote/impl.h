#ifndef MFS_STAGE_REMOTE_IMPL_H
#define MFS_STAGE_REMOTE_IMPL_H

#include "stage/remote/http.h"
#include "stage/remote/remote.h"

struct mfs_stage_remote {
    bool has_key; /* S3 is asked for */
    struct mfs_aws_key key;
    char region[40], endpoint[300]; /* "": AWS' own */
};

/* The http(s) URL of "s3://BUCKET/KEY", or of a URL that is one, with `more` (a path, not encoded)
 * and `query` (encoded; both may be "") behind it. 0, or -EINVAL or -ENOMEM. */
int mfs_stage_url(const struct mfs_stage_remote *r, const char *url, const char *more,
                  const char *query, struct mfs_buf *out);

/* A call about that URL, signed where it is S3's. Its text is to be ended. */
struct mfs_stage_http_call mfs_stage_call_of(const struct mfs_stage *s, const char *method,
                                             const char *url, const struct mfs_buf *http);

/* Compares what a server has with the file's first `size` bytes. 1, 0, or a negative errno with the
 * reason. */
int mfs_stage_same_remote(struct mfs_stage_http_call *get, int fd, uint64_t size,
                          struct mfs_err *err);

/* Adds a task that sends the file to its place below the plan's target. */
void mfs_stage_put_file(struct mfs_stage_dir *d, const char *name, const char *to, uint64_t size);

/* A time of metadata, "1354040105.123456789". 0 or -EINVAL. */
int mfs_stage_mtime_parse(const char *text, struct timespec *t);

#endif
