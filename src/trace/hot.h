/* What a mount's requests are of: files, directories and processes that are asked for most, from
 * samples of requests. Bounded: of each only so many are known, and a new one takes the place of
 * that with the least, and its share (Metwally et al., "Space-Saving"): none that has more than one
 * of MFS_HOT_KEYS of all is missed. Halved every 10 s, so that what was is forgotten. Any thread.
 */
#ifndef MFS_TRACE_HOT_H
#define MFS_TRACE_HOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "proto/messages.h"
#include "trace/line.h"

#define MFS_HOT_KEYS 64U

struct mfs_hot_sampler;

struct mfs_hot_sampler *mfs_hot_create(void);    /* NULL: ENOMEM */
void mfs_hot_destroy(struct mfs_hot_sampler *h); /* takes NULL */

/* Is a request that ends now, mono, to be a sample? One load. At most ten a second are, 200 while
 * somebody looks. */
bool mfs_hot_is_due(const struct mfs_hot_sampler *h, int64_t now);
void mfs_hot_add(struct mfs_hot_sampler *h, const struct mfs_trace_line *l, int64_t now);
void mfs_hot_watched(struct mfs_hot_sampler *h, int64_t now); /* for the next 10 s */

/* The first `most` of each, most requests first, to be cleared with mfs_hot_schema. 0 or -ENOMEM.
 */
int mfs_hot_take(struct mfs_hot_sampler *h, int64_t now, uint32_t most, struct mfs_hot *to);

/* Appends tables for people. 0 or -ENOMEM. */
int mfs_hot_text(const struct mfs_hot *h, struct mfs_buf *to);

#endif
