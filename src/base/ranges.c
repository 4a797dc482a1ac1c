/* The set is a sorted array: most have few ranges, and sequential writes only ever lengthen the
 * last one. */
#include "base/ranges.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void mfs_ranges_init(struct mfs_ranges *r)
{
    r->n = 0;
    r->cap = MFS_RANGES_INLINE;
    r->v = r->few;
}

void mfs_ranges_fini(struct mfs_ranges *r)
{
    if (r->v != r->few)
        free(r->v);
    mfs_ranges_init(r);
}

void mfs_ranges_move(struct mfs_ranges *to, struct mfs_ranges *from)
{
    mfs_ranges_fini(to);
    to->n = from->n;
    to->cap = from->cap;
    memcpy(to->few, from->few, sizeof to->few);
    to->v = from->v == from->few ? to->few : from->v;
    mfs_ranges_init(from);
}

/* Is the i-th range not empty, and apart from those beside it? */
static inline bool is_sound(const struct mfs_ranges *r, uint32_t i)
{
    return r->v[i].lo < r->v[i].hi && (i == 0 || r->v[i - 1].hi < r->v[i].lo) &&
           (i + 1 == r->n || r->v[i].hi < r->v[i + 1].lo);
}

/* The first range that ends at or behind pos. */
static uint32_t find(const struct mfs_ranges *r, uint64_t pos)
{
    uint32_t lo = 0, hi = r->n;

    if (r->n && r->v[r->n - 1].lo <= pos)
        return r->v[r->n - 1].hi >= pos ? r->n - 1 : r->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (r->v[mid].hi < pos)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

uint32_t mfs_ranges_behind(const struct mfs_ranges *r, uint64_t pos)
{
    uint32_t i = find(r, pos);

    return i < r->n && r->v[i].hi == pos ? i + 1 : i;
}

/* Makes room for one more. */
static int grow(struct mfs_ranges *r)
{
    uint32_t cap = r->cap * 2;
    struct mfs_range *v;

    if (r->n < r->cap)
        return 0;
    v = malloc(cap * sizeof *v);
    if (!v)
        return -ENOMEM;
    memcpy(v, r->v, r->n * sizeof *v);
    if (r->v != r->few)
        free(r->v);
    r->v = v;
    r->cap = cap;
    return 0;
}

int mfs_ranges_add(struct mfs_ranges *r, uint64_t lo, uint64_t hi)
{
    uint32_t first = find(r, lo), behind = first;
    int rc;

    if (lo >= hi)
        return 0;
    while (behind < r->n && r->v[behind].lo <= hi)
        behind++;
    if (behind == first) {
        rc = grow(r);
        if (rc)
            return rc;
        memmove(r->v + first + 1, r->v + first, (r->n - first) * sizeof *r->v);
        r->v[first] = (struct mfs_range){lo, hi};
        r->n++;
        assert(is_sound(r, first));
        return 0;
    }
    if (r->v[first].lo < lo)
        lo = r->v[first].lo;
    if (r->v[behind - 1].hi > hi)
        hi = r->v[behind - 1].hi;
    r->v[first] = (struct mfs_range){lo, hi};
    memmove(r->v + first + 1, r->v + behind, (r->n - behind) * sizeof *r->v);
    r->n -= behind - first - 1;
    assert(is_sound(r, first));
    return 0;
}

int mfs_ranges_take(struct mfs_ranges *r, uint64_t lo, uint64_t hi)
{
    uint32_t first = mfs_ranges_behind(r, lo), behind;
    int rc;

    if (lo >= hi || first == r->n || r->v[first].lo >= hi)
        return 0;
    if (r->v[first].lo < lo && r->v[first].hi > hi) { /* two are left of it */
        rc = grow(r);
        if (rc)
            return rc;
        memmove(r->v + first + 1, r->v + first, (r->n - first) * sizeof *r->v);
        r->n++;
        r->v[first].hi = lo;
        r->v[first + 1].lo = hi;
        return 0;
    }
    if (r->v[first].lo < lo)
        r->v[first++].hi = lo;
    for (behind = first; behind < r->n && r->v[behind].hi <= hi; behind++) {
    }
    if (behind < r->n && r->v[behind].lo < hi)
        r->v[behind].lo = hi;
    memmove(r->v + first, r->v + behind, (r->n - behind) * sizeof *r->v);
    r->n -= behind - first;
    assert(first == r->n || is_sound(r, first));
    return 0;
}

void mfs_ranges_cut(struct mfs_ranges *r, uint64_t from)
{
    while (r->n && r->v[r->n - 1].lo >= from)
        r->n--;
    if (r->n && r->v[r->n - 1].hi > from)
        r->v[r->n - 1].hi = from;
}

uint64_t mfs_ranges_bytes(const struct mfs_ranges *r)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < r->n; i++)
        bytes += r->v[i].hi - r->v[i].lo;
    return bytes;
}

bool mfs_ranges_covers(const struct mfs_ranges *r, uint64_t lo, uint64_t hi)
{
    uint32_t i = mfs_ranges_behind(r, lo);

    return lo >= hi || (i < r->n && r->v[i].lo <= lo && r->v[i].hi >= hi);
}
