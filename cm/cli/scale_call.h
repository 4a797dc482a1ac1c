/* `cm scale` and `cm rebalance`: asks the daemon, shows progress, prints the report. */
#ifndef MFS_CM_CLI_SCALE_CALL_H
#define MFS_CM_CLI_SCALE_CALL_H

#include "cm/cli/verbs.h"

extern const struct mfs_conf_option mfs_cm_scale_options[];

/* Asks for how and n (see struct mfs_msg_scale); the rest is taken from the options of
 * mfs_cm_scale_options and --json. Blocks until the change is over; when it is killed, the change
 * goes on. 0 or a negative errno with the sentence for the user. */
int mfs_scale_call(struct mfs_verb_call *call, const char *how, uint32_t n, struct mfs_err *err);

#endif
