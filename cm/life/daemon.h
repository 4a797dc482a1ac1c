/* The cm daemon: one event loop that ties the nodes of a deployment together. */
#ifndef MFS_CM_LIFE_DAEMON_H
#define MFS_CM_LIFE_DAEMON_H

#include <stdbool.h>

#include "base/err.h"
#include "args/paths.h"

/* Goes on from cm.json, in whatever phase it is, until the deployment is stopped. `foreground`: the
 * reason of a failed start goes to the caller only, else into the file `failure`, too, with the end
 * of the log that tells more. When it returns, no process of the deployment is left. 0 when it was
 * stopped, else a negative errno with the reason. */
int mfs_daemon_run(const struct mfs_paths *p, bool foreground, struct mfs_err *err);

#endif
