/* A curve of bounded length: means over steps of time, the oldest overwritten. Pure.
 *
 * Time is that of the wall clock in seconds, so that a curve goes on when cm does. A step nobody
 * has told of is a gap (NaN), and so is a figure that was not known. A clock that jumps ahead
 * leaves a gap; one that jumps back takes what it had been told beyond that time along. */
#ifndef MFS_CM_HISTORY_RING_H
#define MFS_CM_HISTORY_RING_H

#include <stdint.h>

#include "base/buf.h"

#define MFS_HISTORY_FIELDS_MAX 12

struct mfs_history_ring;

/* `slots` steps of `step` seconds, each with so many figures. NULL: no memory. */
struct mfs_history_ring *mfs_history_ring_create(uint32_t step, uint32_t slots, uint32_t fields);
void mfs_history_ring_destroy(struct mfs_history_ring *r); /* takes NULL */
void mfs_history_ring_clear(struct mfs_history_ring *r);

/* Adds figures[fields] to the mean of their step; NaN: not known. */
void mfs_history_ring_put(struct mfs_history_ring *r, int64_t time, const float *figures);

uint32_t mfs_history_ring_step(const struct mfs_history_ring *r);
/* When the newest step began; below 0: there is none. */
int64_t mfs_history_ring_last(const struct mfs_history_ring *r);
/* The mean over steps that begin in [from, from + length), of those that are known; NaN: of none.
 */
float mfs_history_ring_mean(const struct mfs_history_ring *r, uint32_t field, int64_t from,
                            uint32_t length);

/* Appends all of it as a JSON object: means over steps of `length` s, lists named by `names`; null
 * is a gap, "first" the time of the first. 0 or -ENOMEM. */
int mfs_history_ring_json(const struct mfs_history_ring *r, uint32_t length,
                          const char *const *names, struct mfs_buf *out);

/* Appends all of it for another process of this machine. 0 or -ENOMEM. */
int mfs_history_ring_save(const struct mfs_history_ring *r, struct mfs_buf *out);
/* Takes that from the front of n bytes at p, into a ring of the same sizes. The bytes it took, or
 * -EINVAL: they are something else, and the ring is empty. */
int64_t mfs_history_ring_load(struct mfs_history_ring *r, const void *p, size_t n);

#endif
