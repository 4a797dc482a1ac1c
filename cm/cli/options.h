/* Every option of cm, once. Verbs name the groups that they take. */
#ifndef MFS_CM_CLI_OPTIONS_H
#define MFS_CM_CLI_OPTIONS_H

#include "args/conf.h"

extern const struct mfs_conf_option mfs_cm_common_options[];
extern const struct mfs_conf_option mfs_cm_start_options[]; /* also the config file's keys */
extern const struct mfs_conf_option mfs_cm_run_options[];   /* of `start`, not in the file */
extern const struct mfs_conf_option mfs_cm_json_options[];
extern const struct mfs_conf_option mfs_cm_scale_options[];
extern const struct mfs_conf_option mfs_cm_follow_options[];
extern const struct mfs_conf_option mfs_cm_simulate_options[];
extern const struct mfs_conf_option mfs_cm_stop_options[];

#endif
