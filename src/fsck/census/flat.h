/* A flat array that grows, is sorted once, and then searched: what millions of things are kept in
 * with nothing beside them. One thread. */
#ifndef MFS_FSCK_CENSUS_FLAT_H
#define MFS_FSCK_CENSUS_FLAT_H

#include <stddef.h>
#include <stdint.h>

struct mfs_flat {
    char *p;
    size_t n, cap, size; /* items, room for items, bytes of one */
};

typedef int mfs_flat_cmp(const void *a, const void *b);

/* What such a comparison says of two numbers. */
static inline int mfs_flat_order(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

void mfs_flat_init(struct mfs_flat *f, size_t size);
void mfs_flat_fini(struct mfs_flat *f);

/* A new item at the end, all zeros; NULL: no memory. Moves the others. */
void *mfs_flat_add(struct mfs_flat *f);
void *mfs_flat_at(const struct mfs_flat *f, size_t i);

/* Sorts; of items that compare equal one stays. */
void mfs_flat_sort(struct mfs_flat *f, mfs_flat_cmp *cmp);

/* The index of the first item that is not before the key; n: all are. */
size_t mfs_flat_lower(const struct mfs_flat *f, const void *key, mfs_flat_cmp *cmp);
/* The first item that compares equal, or NULL. */
void *mfs_flat_find(const struct mfs_flat *f, const void *key, mfs_flat_cmp *cmp);

#endif
