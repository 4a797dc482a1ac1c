/* What `cm start` says when the deployment runs already, with another value of an option. */
#ifndef MFS_CM_STATE_DIFFERS_H
#define MFS_CM_STATE_DIFFERS_H

#include "base/err.h"

/* -EEXIST, with what runs (`has`, "" for nothing, NULL: not told) and what helps: never something
 * that ends the deployment, as it holds files. */
int mfs_state_differs(struct mfs_err *err, const char *key, const char *has);

#endif
