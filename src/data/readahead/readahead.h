/* Read-ahead of one open file: when reads come in sequence, the next stripes are fetched whole by
 * background threads, several at once, and later reads are served from them. One per open handle,
 * so that what was fetched never outlives the open that close-to-open consistency is about. */
#ifndef MFS_DATA_READAHEAD_READAHEAD_H
#define MFS_DATA_READAHEAD_READAHEAD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/ranges.h"
#include "store/store.h"

struct mfs_dirty;
struct mfs_fetch;
struct mfs_readahead_pool;
struct mfs_readahead;

/* Where the bytes of a read are, in their order: in the caller's buffer, or in stripes that were
 * fetched, which are held until the view is released. Begins as {0}; one thread's. */
#define MFS_VIEW_MAX 8U
struct mfs_view {
    struct iovec iov[MFS_VIEW_MAX];
    int n;
    struct mfs_fetch *held[MFS_VIEW_MAX];
    unsigned nheld;
};

void mfs_view_release(struct mfs_view *view);

struct mfs_readahead_opts {
    uint32_t threads; /* 0: 4 */
    size_t max_bytes; /* fetched and on the way, over all handles; 0: 128 MiB */
    uint32_t window;  /* most stripes ahead of one reader; 0: 8 */
};

int mfs_readahead_pool_create(struct mfs_readahead_pool **pool, struct mfs_store *store,
                              const struct mfs_readahead_opts *opts);
void mfs_readahead_pool_destroy(struct mfs_readahead_pool *pool);

int mfs_readahead_create(struct mfs_readahead **ra, struct mfs_readahead_pool *pool, uint64_t ino);
void mfs_readahead_destroy(struct mfs_readahead *ra);

/* Reads [off, off+len), which the caller has clamped to `size` (the end of the file as known now,
 * nothing beyond is fetched), from what is there, what is coming, or the stripes. `buf` has room
 * for all of it. With a view what was fetched stays where it is as far as the view can tell, and
 * only the rest is in buf at its place; without (NULL) everything is. 0 or -errno, with an empty
 * view. */
int mfs_readahead_read(struct mfs_readahead *ra, uint64_t off, size_t len, uint64_t size, void *buf,
                       struct mfs_view *view);

/* Adds to *content, counted from `off`, what of the range is content as far as this client knows
 * from metadata; all else reads as zeros whatever stripes hold, but for what it has stored itself.
 * 0 or -errno. */
typedef int mfs_content_fn(void *arg, uint64_t off, size_t len, struct mfs_ranges *content);

/* As mfs_readahead_read, of no more than is content (fn NULL: all is), with the dirty bytes of the
 * same file over it: what a reader on this mount has to see, also while those bytes are on their
 * way to the stripes. `d` may be NULL. */
int mfs_readahead_read_over(struct mfs_readahead *ra, struct mfs_dirty *d, mfs_content_fn *fn,
                            void *arg, uint64_t off, size_t len, uint64_t size, void *buf,
                            struct mfs_view *view);

/* Drops what was fetched of the range, and what is on its way: it has been or may have been
 * written. */
void mfs_readahead_drop(struct mfs_readahead *ra, uint64_t off, uint64_t len);

#endif
