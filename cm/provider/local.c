/* The local provider: each node is an lm on this machine, with an address of 127.0.0.0/8. */
#include "cm/provider/provider.h"

#include <string.h>

static int start(const struct mfs_paths *p, const struct mfs_cm_state *s,
                 const struct mfs_cm_node *node, const char *address, struct mfs_proc *proc,
                 struct mfs_err *err)
{
    struct mfs_lm_command c;
    int rc = mfs_provider_command(p, s, node, address, &c);

    if (rc)
        return mfs_err_set(err, rc, "%s: %s", node->name, strerror(-rc));
    return mfs_provider_spawn(p, node, c.argv, proc, err);
}

const struct mfs_provider mfs_provider_local = {&mfs_traits_local, start, NULL};
