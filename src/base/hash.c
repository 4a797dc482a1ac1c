/* XXH64 by libxxhash. */
#include "base/hash.h"

#include <xxhash.h>

uint64_t mfs_hash64(const void *p, size_t n, uint64_t seed)
{
    return XXH64(p, n, seed);
}
