/* The stripes of a file as keys: which there are, and taking many away. For src/data and src/fsck.
 * Any thread; blocks for as many round trips as the number of keys asks for, each bounded. */
#ifndef MFS_DATA_STRIPES_STRIPE_KEYS_H
#define MFS_DATA_STRIPES_STRIPE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

struct mfs_stripe_edit {
    const char *command; /* mfs_strim (a: bytes that stay) or mfs_szero (a, b: offset, length) */
    uint32_t stripe, a, b;
};

#define MFS_STRIPE_EDITS_MAX 2

/* Carries out the edits and deletes the n stripes listed, in one round trip if they are few. *grown
 * sinks by what was freed. */
int mfs_stripe_delete(struct mfs_store *store, uint64_t ino, const struct mfs_stripe_edit *edits,
                      size_t nedits, const uint32_t *stripes, size_t n, int64_t *grown);

/* Is a search through all keys cheaper than asking for `count` stripes one by one? */
int mfs_stripe_scan_pays(struct mfs_store *store, uint64_t count, bool *pays);

/* Calls fn for the stripes of ino that exist, in batches in no order; one that exists throughout is
 * listed at least once. Stops at the first error, also of fn. */
typedef int mfs_stripe_scan_fn(void *arg, const uint32_t *stripes, size_t n);
int mfs_stripe_scan(struct mfs_store *store, uint64_t ino, mfs_stripe_scan_fn *fn, void *arg);

/* The lengths of the n stripes from `first` on; 0 where there is none. n ≤ 4096. */
int mfs_stripe_lengths(struct mfs_store *store, uint64_t ino, uint32_t first, size_t n,
                       uint32_t *lengths);

#endif
