/* Layer 1 of placement. What is hashed is fixed for ever by the byte order below: another order
 * would look for data where it is not. */
#include "cluster/placement.h"

#include "base/bytes.h"
#include "base/hash.h"

uint32_t mfs_placement_entry(uint64_t parent, const char *name, size_t len, uint32_t nparts)
{
    return (uint32_t)(mfs_hash64(name, len, parent) % nparts);
}

uint32_t mfs_placement_stripe(uint64_t ino, uint32_t n, uint32_t nparts)
{
    unsigned char key[12];

    if (n == 0)
        return mfs_placement_home(ino);
    mfs_put_be64(key, ino);
    mfs_put_be32(key + 8, n);
    return (uint32_t)(mfs_hash64(key, sizeof key, 0) % nparts);
}
