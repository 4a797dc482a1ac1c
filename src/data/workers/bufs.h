/* Buffers for stripes and parts of stripes, in a few sizes, reused while they are warm.
 *
 * Fresh memory costs a page fault per 4 KiB, which is more than the copy into it; so what is given
 * back is kept, up to a bound, and handed out again last in, first out. Thread-safe; never blocks
 * for longer than an allocation. */
#ifndef MFS_DATA_WORKERS_BUFS_H
#define MFS_DATA_WORKERS_BUFS_H

#include <stddef.h>

struct mfs_bufs;

/* `stripe_size`: the deployment's; `keep`: most bytes kept while no thread uses them. 0 or -errno.
 */
int mfs_bufs_create(struct mfs_bufs **bufs, size_t stripe_size, size_t keep);
void mfs_bufs_destroy(struct mfs_bufs *bufs); /* all are given back before; NULL is fine */

/* The size of a buffer for len bytes of one stripe of a file whose stripes have so many bytes. */
size_t mfs_bufs_size(size_t len, size_t stripe_size);

/* A buffer of a size that mfs_bufs_size gives, content undefined; NULL (ENOMEM). */
void *mfs_bufs_get(struct mfs_bufs *bufs, size_t size);
void mfs_bufs_put(struct mfs_bufs *bufs, void *buf, size_t size); /* NULL is fine */

#endif
