/* Inode numbers: where the inode is (its home partition), how its data are kept, as far as all must
 * know that come across a key of them, and a sequence of that partition's, so that none is given
 * out twice. They are below 2^53 for each partition's first 2^32 inodes: whatever keeps numbers in
 * doubles (JavaScript, JSON, awk, Lua, R) tells files apart by them.
 *
 *     bits  0 … 31  sequence, lower 32 bits
 *     bit  32       stripes 1 … are not kept at a replica
 *     bits 33 … 35  size of its stripes, 0: the deployment's
 *     bit  36       all stripes are in the home partition
 *     bits 37 … 52  home
 *     bits 53 … 62  sequence, upper 10 bits
 *     bit  63       the sequence has upper bits
 *
 * So bits 53 … 62 of a number without bit 63 are free (fuse/kernel/nodeids.h). */
#ifndef MFS_BASE_INO_H
#define MFS_BASE_INO_H

#include <stdint.h>

#define MFS_INO_SEQ_BITS  32
#define MFS_INO_ALONE     (1ULL << MFS_INO_SEQ_BITS)
#define MFS_INO_STRIPE_AT 33
#define MFS_INO_STRIPE    0x7U /* most of them */
#define MFS_INO_TOGETHER  (1ULL << 36)
#define MFS_INO_HOME_AT   37
#define MFS_INO_HIGH_BITS 10
#define MFS_INO_HIGH_AT   53 /* below: what a double holds */
#define MFS_INO_LARGE     (1ULL << 63)
#define MFS_INO_HOME_MASK 0xffffU
#define MFS_INO_SEQ_MAX   ((1ULL << (MFS_INO_SEQ_BITS + MFS_INO_HIGH_BITS)) - 1)

/* seq is at most MFS_INO_SEQ_MAX. */
static inline uint64_t mfs_ino_make(uint32_t home, uint64_t seq)
{
    uint64_t high = seq >> MFS_INO_SEQ_BITS, low = seq & ((1ULL << MFS_INO_SEQ_BITS) - 1);

    return (high ? MFS_INO_LARGE | high << MFS_INO_HIGH_AT : 0) |
           (uint64_t)home << MFS_INO_HOME_AT | low;
}

/* Bytes of each of the sizes 1 … MFS_INO_STRIPE: 124 KiB, 252 KiB, 508 KiB, … 8188 KiB. A power of
 * two would take redis's allocator a quarter more (cluster/table.h). */
static inline uint32_t mfs_stripe_bytes(unsigned which)
{
    return (65536U << which) - 4096U;
}

/* … or, for 0, the deployment's, which are `usual`. */
static inline int64_t mfs_stripe_size(unsigned which, int64_t usual)
{
    return which ? (int64_t)mfs_stripe_bytes(which) : usual;
}

/* Which of them its stripes have; 0: the deployment's. */
static inline unsigned mfs_ino_stripe(uint64_t ino)
{
    return (unsigned)(ino >> MFS_INO_STRIPE_AT) & MFS_INO_STRIPE;
}

/* Bytes of its stripes, where the deployment's are `usual`. */
static inline uint32_t mfs_ino_stripe_size(uint64_t ino, uint32_t usual)
{
    return (uint32_t)mfs_stripe_size(mfs_ino_stripe(ino), usual);
}

static inline uint32_t mfs_ino_home(uint64_t ino)
{
    return (uint32_t)(ino >> MFS_INO_HOME_AT) & MFS_INO_HOME_MASK;
}

static inline uint64_t mfs_ino_seq(uint64_t ino)
{
    uint64_t high = ino >> MFS_INO_HIGH_AT & ((1ULL << MFS_INO_HIGH_BITS) - 1);

    return high << MFS_INO_SEQ_BITS | (ino & ((1ULL << MFS_INO_SEQ_BITS) - 1));
}

#endif
