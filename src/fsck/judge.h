/* Internal to the comparison of what was seen: each part adds what is wrong to c->found; 0 or
 * -ENOMEM. */
#ifndef MFS_FSCK_JUDGE_H
#define MFS_FSCK_JUDGE_H

#include "fsck/census.h"

int mfs_judge_names(struct mfs_census *c); /* first: counts names in the inodes */
int mfs_judge_data(struct mfs_census *c);

#endif
