/* Reading all partitions. */
#ifndef MFS_FSCK_SCAN_SCAN_H
#define MFS_FSCK_SCAN_SCAN_H

#include "base/err.h"
#include "fsck/census/census.h"
#include "fsck/fsck.h"

/* 0; -EAGAIN: a partition moved meanwhile; or another errno.
 * *disturbed: some answers took very long, so that clients may have been held up, too. */
int mfs_census_scan(struct mfs_census *c, struct mfs_store *store, const struct mfs_fsck_opts *opts,
                    bool *disturbed, struct mfs_err *err);

#endif
