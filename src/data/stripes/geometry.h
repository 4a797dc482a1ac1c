/* How a byte range falls into stripes. Pure.
 *
 * The default stripe is 255 pages (1 MiB − 4 KiB), not 1 MiB: a redis string of exactly 2^20 bytes
 * falls, with its header, into the allocator's next size class and would be accounted as 1.25 MiB.
 */
#ifndef MFS_DATA_STRIPES_GEOMETRY_H
#define MFS_DATA_STRIPES_GEOMETRY_H

#include <stddef.h>
#include <stdint.h>

#define MFS_STRIPE_SIZE_DEFAULT (255U * 4096U)
#define MFS_STRIPE_SIZE_MIN     4096U

/* Bytes; what holes and allocated room are counted in, whatever the stripe size. */
#define MFS_GEOMETRY_BLOCK 4096U

/* Stripe numbers are 32 bits. */
#define MFS_FILE_SIZE_MAX(stripe_size) ((uint64_t)UINT32_MAX * (stripe_size))

struct mfs_piece {
    uint32_t stripe;
    uint32_t off; /* in the stripe */
    uint32_t len; /* > 0, off + len ≤ stripe size */
};

/* The piece of [off, off+len) that lies in the stripe of `off`; len > 0. */
struct mfs_piece mfs_geometry_piece(uint64_t off, uint64_t len, uint32_t stripe_size);

/* Number of stripes that hold bytes below `end`. */
uint32_t mfs_geometry_stripes(uint64_t end, uint32_t stripe_size);

#endif
