/* A set of byte ranges: sorted, apart from each other, merged where they touch. Pure; not
 * thread-safe. */
#ifndef MFS_BASE_RANGES_H
#define MFS_BASE_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct mfs_range {
    uint64_t lo, hi; /* [lo, hi), lo < hi */
};

#define MFS_RANGES_INLINE 4

struct mfs_ranges {
    uint32_t n, cap;
    struct mfs_range *v; /* `few`, or on the heap */
    struct mfs_range few[MFS_RANGES_INLINE];
};

/* A set holds a pointer into itself: it must not be copied, nor moved but by mfs_ranges_move. */
void mfs_ranges_init(struct mfs_ranges *r);
void mfs_ranges_fini(struct mfs_ranges *r);
/* What `to` had is forgotten, `from` is empty then. */
void mfs_ranges_move(struct mfs_ranges *to, struct mfs_ranges *from);

/* 0, or -ENOMEM: unchanged. */
int mfs_ranges_add(struct mfs_ranges *r, uint64_t lo, uint64_t hi);
int mfs_ranges_take(struct mfs_ranges *r, uint64_t lo, uint64_t hi); /* takes it out */

void mfs_ranges_cut(struct mfs_ranges *r, uint64_t from); /* forgets all at or beyond */

uint64_t mfs_ranges_bytes(const struct mfs_ranges *r);
bool mfs_ranges_covers(const struct mfs_ranges *r, uint64_t lo, uint64_t hi);

/* Index of the first range that ends behind pos; r->n: there is none. */
uint32_t mfs_ranges_behind(const struct mfs_ranges *r, uint64_t pos);

static inline uint64_t mfs_ranges_end(const struct mfs_ranges *r)
{
    return r->n ? r->v[r->n - 1].hi : 0;
}

#endif
