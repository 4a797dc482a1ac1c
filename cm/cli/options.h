/* The options of `cm start`. */
#ifndef MFS_CM_CLI_OPTIONS_H
#define MFS_CM_CLI_OPTIONS_H

#include "args/conf.h"

/* Also the config file's keys, as are the providers' own (provider/exec.h, …). */
extern const struct mfs_conf_option mfs_cm_start_options[];
extern const struct mfs_conf_option mfs_cm_run_options[]; /* not in the file */

#endif
