/* Partitions whose processes are gone for good, journal and all, begin empty. Before any client
 * gets to know of the new ones, what the other partitions say that was there is marked in them:
 * stripes of files are lost (lost.h), so that they are never read as zeros; the root shows the
 * names that others have; no inode's number is given out twice. Names that were there are gone:
 * what they led to memefs fsck --repair puts into /lost+found. */
#ifndef MFS_FSCK_RENEW_H
#define MFS_FSCK_RENEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

struct mfs_renewed_counts {
    uint64_t files, stripes, bytes; /* marked as lost */
};

/* `renewed` says of each partition whether it begins empty; the store can reach all of them. May be
 * repeated. Blocks as long as reading all partitions' keys takes. 0, or a negative errno with the
 * reason. */
int mfs_fsck_renew(struct mfs_store *store, const bool *renewed, struct mfs_renewed_counts *counts,
                   struct mfs_err *err);

#endif
