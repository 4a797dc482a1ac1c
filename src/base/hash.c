/* XXH64 by libxxhash. */
#include "base/hash.h"

#include <xxhash.h>

uint64_t mfs_hash64(const void *p, size_t n, uint64_t seed)
{
    return XXH64(p, n, seed);
}

/* What the library calls its state is ours by another name. */
static XXH64_state_t *state_of(const struct mfs_hash *h)
{
    return (XXH64_state_t *)h;
}

struct mfs_hash *mfs_hash_create(void)
{
    XXH64_state_t *s = XXH64_createState();

    if (s)
        XXH64_reset(s, 0);
    return (struct mfs_hash *)s;
}

void mfs_hash_destroy(struct mfs_hash *h)
{
    XXH64_freeState(state_of(h));
}

void mfs_hash_add(struct mfs_hash *h, const void *p, size_t n)
{
    XXH64_update(state_of(h), p, n);
}

uint64_t mfs_hash_sum(const struct mfs_hash *h)
{
    return XXH64_digest(state_of(h));
}
