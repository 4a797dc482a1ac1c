/* A file's content on its partitions, without any state of ours: each call goes to all stripes that
 * it touches at once. Bytes that no stripe holds are zeros. Any thread; blocks for the round trip.
 * Errors are the store's: -EIO, -ETIMEDOUT, -ENOSPC (writes only). */
#ifndef MFS_DATA_STRIPES_STRIPES_H
#define MFS_DATA_STRIPES_STRIPES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/ranges.h"
#include "store/store.h"

/* Fills buf with [off, off+len), holes as zeros. The caller has clamped the range to the size. */
int mfs_stripes_read(struct mfs_store *store, uint64_t ino, uint64_t off, size_t len, void *buf);

/* Writes just these bytes; whole stripes by SET, parts in place. *alloc grows by what was newly
 * stored (bytes). On error some pieces may have been written. */
int mfs_stripes_write(struct mfs_store *store, uint64_t ino, uint64_t off, size_t len,
                      const void *buf, int64_t *alloc);

/* Removes every byte at or beyond `from` (below data_end) in stripes 1 …, and with `first` also in
 * stripe 0. Files with more possible stripes than keys exist are found by scanning. Works when
 * memory is full. *alloc (may be NULL) sinks by what was freed. */
int mfs_stripes_trim(struct mfs_store *store, uint64_t ino, uint64_t from, uint64_t data_end,
                     bool first, int64_t *alloc);

/* Makes [off, off+len) read as zeros, freeing whole stripes, and the end of a stripe that has
 * nothing behind the range (punch hole). At or beyond data_end nothing is touched, also in the last
 * stripe: what is there another client may be about to make known, or has by now. As trim for the
 * rest. */
int mfs_stripes_punch(struct mfs_store *store, uint64_t ino, uint64_t off, uint64_t len,
                      uint64_t data_end, int64_t *alloc);

/* Takes out of *ranges, which were stored in the file, what has been cut off since: the bytes
 * beyond the present ends of their stripes. 0 or an error: some may have been taken out then. */
int mfs_stripes_still_stored(struct mfs_store *store, uint64_t ino, struct mfs_ranges *ranges);

/* Has the partition memory for more? Stores nothing. 0, -ENOSPC, or what else is wrong with it. */
int mfs_stripes_room(struct mfs_store *store, uint32_t part);

/* SEEK_DATA / SEEK_HOLE from off: data go from a stripe's begin to the end of the block (4096) of
 * its last byte; size is the end of the file, data_end the bound of its data. Returns 0 and
 * *result, or -ENXIO. */
int mfs_stripes_seek(struct mfs_store *store, uint64_t ino, uint64_t off, int whence, uint64_t size,
                     uint64_t data_end, uint64_t *result);

#endif
