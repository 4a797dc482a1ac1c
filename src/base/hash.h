/* XXH64, the one hash of the project. */
#ifndef MFS_BASE_HASH_H
#define MFS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t mfs_hash64(const void *p, size_t n, uint64_t seed);

#endif
