/* `cm start --adopt`: what comes before the daemon. */
#ifndef MFS_CM_CLI_ADOPT_H
#define MFS_CM_CLI_ADOPT_H

#include "args/program.h"
#include "cm/state/state.h"

/* On a machine with a node of the deployment: has the present cm hand over or, where it does not
 * answer, has the nodes vote for a new one here; then the state, which the caller clears, is in
 * cm.json, for a daemon to go on from. Blocks, for some 40 s at most. 0 or a negative errno with
 * the reason; then nothing has changed. */
int mfs_adopt(const struct mfs_verb_call *call, struct mfs_cm_state *st, struct mfs_err *err);

#endif
