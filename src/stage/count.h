/* What there is to do in all, for the progress: a thread of its own looks through the sources. */
#ifndef MFS_STAGE_COUNT_H
#define MFS_STAGE_COUNT_H

#include "stage/impl.h"

struct mfs_stage_counter;

struct mfs_stage_counter *mfs_stage_count_begin(struct mfs_stage *s); /* NULL: there is none */
void mfs_stage_count_end(struct mfs_stage_counter *c);                /* takes NULL */

#endif
