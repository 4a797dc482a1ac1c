/* Which of the bytes that were stored are still there, after another mount has cut the file. */
#include "data/stripes/stripes.h"

#include <errno.h>
#include <stdlib.h>

#include "data/stripes/geometry.h"
#include "data/stripes/stripe_keys.h"

#define BATCH 4096U /* stripes asked for at once */

/* Stripes [first, first + n) are this long: what is beyond was cut off. */
static int take_out(struct mfs_ranges *ranges, uint64_t size, uint64_t first,
                    const uint32_t *lengths, uint32_t n)
{
    int rc = 0;

    for (uint32_t i = 0; i < n && !rc; i++) {
        uint64_t base = (first + i) * size;

        if (lengths[i] < size)
            rc = mfs_ranges_take(ranges, base + lengths[i], base + size);
    }
    return rc;
}

/* The stripe behind the last of those that ranges from the at-th on touch without a gap. Others are
 * not asked for: it is nothing to us if they can't be. */
static uint64_t run_end(const struct mfs_ranges *ranges, uint32_t at, uint32_t size)
{
    uint64_t end = mfs_geometry_stripes(ranges->v[at].hi, size);

    while (++at < ranges->n && ranges->v[at].lo / size <= end)
        end = mfs_geometry_stripes(ranges->v[at].hi, size);
    return end;
}

int mfs_stripes_still_stored(struct mfs_store *store, uint64_t ino, struct mfs_ranges *ranges)
{
    uint32_t size = mfs_store_stripe_of(store, ino), at;
    uint64_t next = 0;
    uint32_t *lengths = malloc(BATCH * sizeof *lengths);
    int rc = lengths ? 0 : -ENOMEM;

    while (!rc && (at = mfs_ranges_behind(ranges, next * size)) < ranges->n) {
        uint64_t first = ranges->v[at].lo / size, end = run_end(ranges, at, size);
        uint32_t n;

        first = first > next ? first : next;
        n = end - first < BATCH ? (uint32_t)(end - first) : BATCH;
        rc = mfs_stripe_lengths(store, ino, (uint32_t)first, n, lengths);
        if (!rc)
            rc = take_out(ranges, size, first, lengths, n);
        next = first + n;
    }
    free(lengths);
    return rc;
}
