/* What a stage of the work has taken, of what the history knows. Pure. */
#ifndef MFS_CM_HISTORY_STAGES_H
#define MFS_CM_HISTORY_STAGES_H

#include "cm/history/history.h"

/* NaN: not known. */
struct mfs_stage_figures {
    double written, read; /* bytes, by all mounts */
    double memory;        /* bytes of data, at most */
    double nodes;         /* that are paid for, at most */
    double node_hours;
};

/* In [from, to), s of the wall clock: by seconds where the last hour has all of it, else by
 * minutes, of which those count that begin in it. */
void mfs_stage_measure(const struct mfs_history *h, int64_t from, int64_t to,
                       struct mfs_stage_figures *out);

#endif
