/* `cm scale`, `cm rebalance`, `cm drain`: asks the daemon, shows progress, prints the report. */
#ifndef MFS_CM_CLI_SCALE_CALL_H
#define MFS_CM_CLI_SCALE_CALL_H

#include "cm/cli/verbs.h"
#include "proto/messages.h"

extern const struct mfs_conf_option mfs_cm_scale_options[];

/* Asks for that; what is not set is taken from the options of mfs_cm_scale_options and --json.
 * Blocks until the change is over; when it is killed, the change
 * goes on. 0 or a negative errno with the sentence for the user. */
int mfs_scale_call(struct mfs_verb_call *call, struct mfs_msg_scale *what, struct mfs_err *err);

#endif
