/* What `cm start --restore` takes from the checkpoint besides the files. */
#ifndef MFS_CM_CLI_RESTORE_H
#define MFS_CM_CLI_RESTORE_H

#include "args/conf.h"
#include "base/buf.h"

/* Where --restore is given: sets the options that the deployment had which was saved, but for those
 * that were given. --nodes and --memory are taken together or not at all, as are the provider and
 * what belongs to it. `taken` gets them as a command line has them, "" when there are none. 0, or a
 * negative errno with the reason. */
int mfs_restore_options(struct mfs_conf *conf, struct mfs_buf *taken, struct mfs_err *err);

#endif
