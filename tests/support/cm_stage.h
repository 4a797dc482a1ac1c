/* cm's own code, running but for its Local Managers, whose part a test plays: what is common to the
 * tests of cm's changes. One thread. */
#ifndef MFS_TESTS_CM_STAGE_H
#define MFS_TESTS_CM_STAGE_H

#include "cm/nodes/control.h"

struct cm_stage {
    char dir[64], address[MFS_ADDRESS_MAX]; /* of its own; where cm listens */
    struct mfs_paths paths;
    struct mfs_cm cm;
};

/* What a deployment begins with: named "unit", running, of so many nodes of 1 GiB and
 * partitions, which are on none yet, with a table of epoch 5. */
void cm_stage_state(struct mfs_cm_state *s, uint32_t nnodes, uint32_t nparts);

/* Makes the directory, and begins to listen. The caller has set stage->cm.state, and may have set
 * its provider. 0 or -1. */
int cm_stage_open(struct cm_stage *stage);

/* A Local Manager's first word on a new connection. Fails the test if it can't, or is refused. */
void cm_stage_join(struct mfs_conn *c, uint32_t node, uint64_t epoch);

/* The caller has closed his connections and ended what was under way, but for the listener, which
 * cm_stage_deafen may close before. */
void cm_stage_deafen(struct cm_stage *stage);
void cm_stage_close(struct cm_stage *stage);

#endif
