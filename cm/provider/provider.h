/* Where nodes come from. A provider starts a Local Manager at a node; all the rest goes over the
 * control protocol. */
#ifndef MFS_CM_PROVIDER_PROVIDER_H
#define MFS_CM_PROVIDER_PROVIDER_H

#include <limits.h>
#include <stdbool.h>

#include "base/err.h"
#include "host/proc.h"
#include "args/paths.h"
#include "cm/state/state.h"
#include "cm/state/traits.h"

struct mfs_provider {
    const struct mfs_provider_traits *traits;

    /* Starts the node's Local Manager, which is to connect to cm at `address`, and describes the
     * process on this machine that stands for it: when that ends, the Local Manager has (unless its
     * own can't be seen, and it is connected all the same). Does not wait for it to connect. 0 or a
     * negative errno with the reason. */
    int (*start)(const struct mfs_paths *p, const struct mfs_cm_state *s,
                 const struct mfs_cm_node *node, const char *address, struct mfs_proc *proc,
                 struct mfs_err *err);

    /* The node's Local Manager has ended for good: gives the node back. Does not wait; a failure is
     * logged. A child that does it, for the caller to reap; 0: there is none. NULL: nothing to do.
     */
    pid_t (*stop)(const struct mfs_paths *p, const struct mfs_cm_state *s,
                  const struct mfs_cm_node *node);
};

extern const struct mfs_provider mfs_provider_local, mfs_provider_exec;

/* NULL when there is none of that name. */
const struct mfs_provider *mfs_provider_find(const char *name);

/* For providers: the Local Manager's command line. argv points into the struct, the paths, the
 * state and the node. */
struct mfs_lm_command {
    char lm[PATH_MAX], id[16], cm[MFS_ADDRESS_MAX];
    const char *argv[15];
};

int mfs_provider_command(const struct mfs_paths *p, const struct mfs_cm_state *s,
                         const struct mfs_cm_node *node, const char *address,
                         struct mfs_lm_command *c); /* 0 or -errno */

/* For providers: runs argv with its output in the node's lm.log, and writes its pid file. */
int mfs_provider_spawn(const struct mfs_paths *p, const struct mfs_cm_node *node,
                       const char *const *argv, struct mfs_proc *proc, struct mfs_err *err);

#endif
