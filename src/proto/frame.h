/* Frames: a 4-byte big-endian length, then that many bytes. No I/O: bytes go in as they come. */
#ifndef MFS_PROTO_FRAME_H
#define MFS_PROTO_FRAME_H

#include <stddef.h>

#include "base/buf.h"

#define MFS_FRAME_HEAD 4
#define MFS_FRAME_MAX  (64U << 20) /* the state of a cm with 65,535 partitions */

/* Looks for a whole frame at the front of `in`. Returns 1 with body and length (pointing into the
 * buffer; call mfs_frame_done when it has been used), 0 when more bytes are needed, -EMSGSIZE when
 * it announces more than `max` bytes and -EPROTO when it is empty: then the stream is lost. */
int mfs_frame_next(const struct mfs_buf *in, size_t max, char **body, size_t *len);
void mfs_frame_done(struct mfs_buf *in, size_t len);

/* Appends a frame. 0, -EMSGSIZE or -ENOMEM. */
int mfs_frame_put(struct mfs_buf *out, const void *body, size_t len);

/* The same in two steps, for a body written in place: mark, append the body, seal. On an error of
 * seal the frame is taken back. */
int mfs_frame_begin(struct mfs_buf *out, size_t *mark);
int mfs_frame_seal(struct mfs_buf *out, size_t mark);

#endif
