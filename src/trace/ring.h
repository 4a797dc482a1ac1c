/* The last so many lines, for readers of which each goes at its own pace: who is too slow loses the
 * oldest, and hears how many. Memory is taken while there is a reader. Any thread; nothing blocks.
 */
#ifndef MFS_TRACE_RING_H
#define MFS_TRACE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/line.h"

struct mfs_trace_ring;

/* `size`: lines. `wake` is called, with the ring's lock held, when a line has come while a reader
 * wanted one (mfs_trace_ring_want). NULL: ENOMEM. */
struct mfs_trace_ring *mfs_trace_ring_create(uint32_t size, void (*wake)(void *arg), void *arg);
void mfs_trace_ring_destroy(struct mfs_trace_ring *r); /* takes NULL */

/* A reader comes: from the next line on. 0 or -ENOMEM. */
int mfs_trace_ring_open(struct mfs_trace_ring *r, uint64_t *at);
void mfs_trace_ring_close(struct mfs_trace_ring *r);

/* Is there a reader? One load. */
bool mfs_trace_ring_is_read(const struct mfs_trace_ring *r);

/* Nothing happens without a reader. */
void mfs_trace_ring_put(struct mfs_trace_ring *r, const struct mfs_trace_line *l);

/* The reader's next line; false: there is none yet. *lost: so many before it are gone. */
bool mfs_trace_ring_take(struct mfs_trace_ring *r, uint64_t *at, struct mfs_trace_line *l,
                         uint64_t *lost);

/* Some reader waits: `wake` is to be called for the next line. False: that at `at` has one already.
 */
bool mfs_trace_ring_want(struct mfs_trace_ring *r, uint64_t at);

#endif
