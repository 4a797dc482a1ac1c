/* A meeting of processes on several nodes that share nothing but a directory. Each step is a file
 * per member: it appears there whole, by rename(2). Not thread-safe. */
#ifndef MFS_CLI_MEETING_H
#define MFS_CLI_MEETING_H

#include "base/err.h"

struct mfs_meeting;

/* Joins, and waits until `members` have. -EEXIST: the directory holds something else, or more come
 * than are expected. `patience`: seconds that this and each step wait, then -ETIMEDOUT. 0, or a
 * negative errno with the sentence. */
int mfs_meeting_join(struct mfs_meeting **meeting, const char *dir, unsigned members,
                     unsigned patience, struct mfs_err *err);

unsigned mfs_meeting_rank(const struct mfs_meeting *m); /* 0 … members − 1 */

/* Tells the others a number, waits until each has told its own of this step, and gives the largest.
 */
int mfs_meeting_step(struct mfs_meeting *m, const char *step, double mine, double *largest,
                     struct mfs_err *err);

/* Leaves; `why`, when it is not NULL, ends the wait of the others with this sentence. The last
 * thing that a member does: of rank 0 it waits for all and removes the directory with what is in
 * it. NULL is left alone. */
void mfs_meeting_leave(struct mfs_meeting *m, const char *why);

#endif
