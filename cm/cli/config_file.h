/* The config file: a JSON object whose keys are options. */
#ifndef MFS_CM_CLI_CONFIG_FILE_H
#define MFS_CM_CLI_CONFIG_FILE_H

#include "args/conf.h"

/* Reads it into conf, where the command line's values stay. 0, or a negative errno with the file
 * and the key in the message. `config`, `help` and `foreground` make no sense in it: -EINVAL. */
int mfs_config_file_load(const char *path, struct mfs_conf *conf, struct mfs_err *err);

#endif
