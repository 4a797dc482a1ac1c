/* Mending what was found, one by one. Each step changes only what is still as it was found, in an
 * order that never leaves data without a name. */
#ifndef MFS_FSCK_MEND_MEND_H
#define MFS_FSCK_MEND_MEND_H

#include "fsck/census/census.h"

struct mfs_mender;

/* A client of the deployment: `meta`, or NULL: one with a session of its own. 0 or a negative
 * errno.
 */
struct mfs_meta;
int mfs_mender_create(struct mfs_mender **m, struct mfs_store *store, struct mfs_meta *meta);
void mfs_mender_destroy(struct mfs_mender *m); /* takes NULL */

/* What every client does now and then: ends what others have left that is old enough. */
void mfs_mender_keep_house(struct mfs_mender *m);

/* 0: it is mended; -EOPNOTSUPP: that is for people; -ESTALE: it has changed; or another errno. */
int mfs_mender_mend(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f);

#endif
