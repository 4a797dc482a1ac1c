#include "fsck/census/flat.h"

#include <stdlib.h>
#include <string.h>

#define FIRST 64

void mfs_flat_init(struct mfs_flat *f, size_t size)
{
    *f = (struct mfs_flat){.size = size};
}

void mfs_flat_fini(struct mfs_flat *f)
{
    free(f->p);
    mfs_flat_init(f, f->size);
}

void *mfs_flat_add(struct mfs_flat *f)
{
    void *item;

    if (f->n == f->cap) {
        size_t cap = f->cap ? f->cap + f->cap / 2 : FIRST;
        char *p = reallocarray(f->p, cap, f->size);

        if (!p)
            return NULL;
        f->p = p;
        f->cap = cap;
    }
    item = f->p + f->n++ * f->size;
    memset(item, 0, f->size);
    return item;
}

void *mfs_flat_at(const struct mfs_flat *f, size_t i)
{
    return f->p + i * f->size;
}

void mfs_flat_sort(struct mfs_flat *f, mfs_flat_cmp *cmp)
{
    size_t kept = 0;

    if (f->n < 2)
        return;
    qsort(f->p, f->n, f->size, cmp);
    for (size_t i = 1; i < f->n; i++) {
        if (cmp(mfs_flat_at(f, kept), mfs_flat_at(f, i)) == 0)
            continue;
        if (++kept != i)
            memcpy(mfs_flat_at(f, kept), mfs_flat_at(f, i), f->size);
    }
    f->n = kept + 1;
}

size_t mfs_flat_lower(const struct mfs_flat *f, const void *key, mfs_flat_cmp *cmp)
{
    size_t low = 0, high = f->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (cmp(mfs_flat_at(f, mid), key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

void *mfs_flat_find(const struct mfs_flat *f, const void *key, mfs_flat_cmp *cmp)
{
    size_t i = mfs_flat_lower(f, key, cmp);

    return i < f->n && cmp(mfs_flat_at(f, i), key) == 0 ? mfs_flat_at(f, i) : NULL;
}
