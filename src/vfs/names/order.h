/* In which order a program goes through a directory's names, other than that of the listing. */
#ifndef MFS_VFS_NAMES_ORDER_H
#define MFS_VFS_NAMES_ORDER_H

#include "meta/meta.h"

enum mfs_order {
    MFS_ORDER_LISTED,
    MFS_ORDER_NUMBERS, /* f9 before f10: as programs count */
    MFS_ORDER_BYTES,   /* as they sort */
    MFS_ORDERS
};

/* The listing's places in that order, heap; NULL: out of memory. */
uint32_t *mfs_order_create(const struct mfs_listing *l, enum mfs_order how);
/* Where the name, which is in the listing, is in the order. */
size_t mfs_order_find(const struct mfs_listing *l, const uint32_t *order, enum mfs_order how,
                      const char *name);

#endif
