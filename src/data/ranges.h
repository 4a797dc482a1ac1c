/* A set of byte ranges within one stripe: sorted, apart from each other, merged where they touch.
 * Pure; not thread-safe. */
#ifndef MFS_DATA_RANGES_H
#define MFS_DATA_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct mfs_range {
    uint32_t lo, hi; /* [lo, hi), lo < hi */
};

#define MFS_RANGES_INLINE 4

struct mfs_ranges {
    uint32_t n, cap;
    struct mfs_range *v; /* `few`, or on the heap */
    struct mfs_range few[MFS_RANGES_INLINE];
};

/* A set holds a pointer into itself: it must not be copied or moved. */
void mfs_ranges_init(struct mfs_ranges *r);
void mfs_ranges_fini(struct mfs_ranges *r);

int mfs_ranges_add(struct mfs_ranges *r, uint32_t lo, uint32_t hi); /* 0 or -ENOMEM (unchanged) */
void mfs_ranges_cut(struct mfs_ranges *r, uint32_t from);           /* forgets all at or beyond */

uint32_t mfs_ranges_bytes(const struct mfs_ranges *r);
bool mfs_ranges_covers(const struct mfs_ranges *r, uint32_t lo, uint32_t hi);

static inline uint32_t mfs_ranges_end(const struct mfs_ranges *r)
{
    return r->n ? r->v[r->n - 1].hi : 0;
}

#endif
