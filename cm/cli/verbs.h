/* The verbs of cm. Each is in a file of its name in verbs/. */
#ifndef MFS_CM_CLI_VERBS_H
#define MFS_CM_CLI_VERBS_H

#include "args/program.h"

extern const struct mfs_program mfs_cm_program;

extern const struct mfs_verb mfs_cm_start, mfs_cm_status, mfs_cm_scale, mfs_cm_rebalance,
    mfs_cm_policy, mfs_cm_events, mfs_cm_checkpoint, mfs_cm_doctor, mfs_cm_stop, mfs_cm_simulate,
    mfs_cm_leave, mfs_cm_daemon, mfs_cm_drain, mfs_cm_forget, mfs_cm_replace, mfs_cm_describe,
    mfs_cm_list, mfs_cm_top, mfs_cm_clients, mfs_cm_report, mfs_cm_mark;

#endif
