/* Where nodes come from. A provider starts a Local Manager at a node; all the rest goes over the
 * control protocol. */
#ifndef MFS_CM_PROVIDER_H
#define MFS_CM_PROVIDER_H

#include "base/err.h"
#include "base/proc.h"
#include "cm/paths.h"
#include "cm/state.h"

struct mfs_provider {
    const char *name;

    /* Starts the node's Local Manager, which is to connect to cm at `address`, and describes the
     * process on this machine that stands for it: when that ends, the Local Manager has. Does not
     * wait for it to connect. 0 or a negative errno with the reason. */
    int (*start)(const struct mfs_paths *p, const struct mfs_cm_node *node, const char *address,
                 struct mfs_proc *proc, struct mfs_err *err);
};

/* NULL when there is none of that name. */
const struct mfs_provider *mfs_provider_find(const char *name);

#endif
