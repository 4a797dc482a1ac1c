/* The comparison of all that was seen with each other; what is wrong goes to c->found. 0 or
 * -ENOMEM. */
#ifndef MFS_FSCK_JUDGE_JUDGE_H
#define MFS_FSCK_JUDGE_JUDGE_H

#include "fsck/census/census.h"

int mfs_census_judge(struct mfs_census *c);

/* Its parts. */
int mfs_judge_names(struct mfs_census *c); /* first: counts names in the inodes */
int mfs_judge_data(struct mfs_census *c);

#endif
