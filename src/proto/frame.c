/* Frames. The length is checked before any room is made for the body. */
#include "proto/frame.h"

#include <errno.h>
#include <stdint.h>

#include "base/bytes.h"

int mfs_frame_next(const struct mfs_buf *in, size_t max, char **body, size_t *len)
{
    uint32_t n;

    if (mfs_buf_len(in) < MFS_FRAME_HEAD)
        return 0;
    n = mfs_get_be32(mfs_buf_data(in));
    if (!n)
        return -EPROTO;
    if (n > max)
        return -EMSGSIZE;
    if (mfs_buf_len(in) - MFS_FRAME_HEAD < n)
        return 0;
    *body = mfs_buf_data(in) + MFS_FRAME_HEAD;
    *len = n;
    return 1;
}

void mfs_frame_done(struct mfs_buf *in, size_t len)
{
    mfs_buf_consume(in, MFS_FRAME_HEAD + len);
}

int mfs_frame_put(struct mfs_buf *out, const void *body, size_t len)
{
    size_t mark;
    int rc = mfs_frame_begin(out, &mark);

    if (!rc)
        rc = mfs_buf_append(out, body, len);
    return rc ? rc : mfs_frame_seal(out, mark);
}

int mfs_frame_begin(struct mfs_buf *out, size_t *mark)
{
    *mark = mfs_buf_len(out);
    return mfs_buf_append(out, "\0\0\0", MFS_FRAME_HEAD);
}

int mfs_frame_seal(struct mfs_buf *out, size_t mark)
{
    size_t len = mfs_buf_len(out) - mark - MFS_FRAME_HEAD;

    if (!len || len > MFS_FRAME_MAX) {
        out->end = out->start + mark;
        return -EMSGSIZE;
    }
    mfs_put_be32(mfs_buf_data(out) + mark, (uint32_t)len);
    return 0;
}
