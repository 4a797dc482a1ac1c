/* `cm drain NODE…`: nodes give their partitions to the others, and leave. */
#include <errno.h>
#include <stdlib.h>

#include "base/text.h"
#include "cluster/placement.h"
#include "cm/cli/scale_call.h"
#include "cm/cli/verbs.h"

/* what->node is the caller's to free, also on failure. */
static int take_names(const struct mfs_verb_call *call, struct mfs_msg_scale *what,
                      struct mfs_err *err)
{
    what->node = calloc((size_t)call->nargs, sizeof *what->node);
    if (!what->node)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    for (int i = 0; i < call->nargs; i++)
        if (mfs_text_copy(what->node[i].name, sizeof what->node[i].name, call->args[i]))
            return mfs_err_set(err, -EINVAL, "no node has so long a name: %s", call->args[i]);
    what->nnodes = (uint32_t)call->nargs;
    return 0;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_msg_scale what = {.how = "drain"};
    int rc = take_names(call, &what, err);

    if (!rc)
        rc = mfs_scale_call(call, &what, err);
    free(what.node);
    return rc;
}

const struct mfs_verb mfs_cm_drain = {
    .name = "drain",
    .args = "NODE...",
    .summary = "have these nodes give their partitions to the others, and leave",
    .about = "Takes nodes out, by name or address (see cm status): their partitions move to the\n"
             "others while files stay usable, then their mounts, their processes and the nodes\n"
             "themselves go. Refused, with the figures, when the others can't hold the data.\n"
             "Returns when all is done; when it is killed, the change goes on, and the same call\n"
             "waits for its end.",
    .least = 1,
    .most = MFS_PARTITIONS_MAX,
    .options = MFS_OPTIONS(mfs_cm_scale_options, mfs_json_options, mfs_deployment_options),
    .run = run};
