#include "vfs/names/order.h"

#include <stdlib.h>
#include <string.h>

struct by {
    const struct mfs_listing *listing;
    enum mfs_order how;
};

static int compare(enum mfs_order how, const char *a, const char *b)
{
    return how == MFS_ORDER_NUMBERS ? strverscmp(a, b) : strcmp(a, b);
}

static int compare_places(const void *a, const void *b, void *arg)
{
    const struct by *by = arg;

    return compare(by->how, mfs_listing_at(by->listing, *(const uint32_t *)a).name,
                   mfs_listing_at(by->listing, *(const uint32_t *)b).name);
}

uint32_t *mfs_order_create(const struct mfs_listing *l, enum mfs_order how)
{
    size_t n = mfs_listing_count(l);
    uint32_t *order = malloc((n + 1) * sizeof *order);

    if (order == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, n, sizeof *order, compare_places, &(struct by){l, how});
    return order;
}

size_t mfs_order_find(const struct mfs_listing *l, const uint32_t *order, enum mfs_order how,
                      const char *name)
{
    size_t low = 0, high = mfs_listing_count(l);

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare(how, mfs_listing_at(l, order[middle]).name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
