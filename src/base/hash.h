/* XXH64, the one hash of the project. */
#ifndef MFS_BASE_HASH_H
#define MFS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t mfs_hash64(const void *p, size_t n, uint64_t seed);

/* The same over bytes that come piece by piece, with seed 0. */
struct mfs_hash;

struct mfs_hash *mfs_hash_create(void); /* NULL: ENOMEM */
void mfs_hash_destroy(struct mfs_hash *h);
void mfs_hash_add(struct mfs_hash *h, const void *p, size_t n);
uint64_t mfs_hash_sum(const struct mfs_hash *h); /* of what was added so far */

#endif
