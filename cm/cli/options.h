/* The options of `cm start`. */
#ifndef MFS_CM_CLI_OPTIONS_H
#define MFS_CM_CLI_OPTIONS_H

#include "args/conf.h"

extern const struct mfs_conf_option mfs_cm_start_options[]; /* also the config file's keys */
extern const struct mfs_conf_option mfs_cm_run_options[];   /* not in the file */

#endif
