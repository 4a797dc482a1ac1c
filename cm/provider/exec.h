/* What the exec provider has of its own for `cm start`. */
#ifndef MFS_CM_PROVIDER_EXEC_H
#define MFS_CM_PROVIDER_EXEC_H

#include "args/conf.h"

extern const struct mfs_conf_option mfs_exec_options[];

#endif
