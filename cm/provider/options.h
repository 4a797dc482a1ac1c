/* Options of `cm start` that are one provider's alone; each table is that of its `options`. */
#ifndef MFS_CM_PROVIDER_OPTIONS_H
#define MFS_CM_PROVIDER_OPTIONS_H

#include "args/conf.h"

extern const struct mfs_conf_option mfs_exec_options[], mfs_slurm_options[], mfs_ssh_options[],
    mfs_ec2_options[];

/* All of them, for a list of groups (args/conf.h). */
#define MFS_PROVIDER_OPTIONS mfs_exec_options, mfs_ssh_options, mfs_slurm_options, mfs_ec2_options

#endif
