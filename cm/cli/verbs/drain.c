/* `cm drain NODE…`: nodes give their partitions to the others, and leave. `cm replace OLD [HOST]`:
 * one comes in the place of one. `cm forget NODE…`: nodes that are dead are no part of the
 * deployment any more. */
#include <errno.h>
#include <stdlib.h>

#include "base/text.h"
#include "cluster/placement.h"
#include "cm/cli/agree.h"
#include "cm/cli/scale_call.h"
#include "cm/cli/verbs.h"

/* The first n arguments. what->node is the caller's to free, also on failure. */
static int take_names(const struct mfs_verb_call *call, int n, struct mfs_msg_scale *what,
                      struct mfs_err *err)
{
    what->node = calloc((size_t)n, sizeof *what->node);
    if (!what->node)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    for (int i = 0; i < n; i++)
        if (mfs_text_copy(what->node[i].name, sizeof what->node[i].name, call->args[i]))
            return mfs_err_set(err, -EINVAL, "no node has so long a name: %s", call->args[i]);
    what->nnodes = (uint32_t)n;
    return 0;
}

static int run(struct mfs_verb_call *call, const char *how, struct mfs_err *err)
{
    struct mfs_msg_scale what = {0};
    int rc = take_names(call, call->nargs, &what, err);

    mfs_text_copy(what.how, sizeof what.how, how);
    what.yes = mfs_conf_knows(call->conf, "yes") && mfs_conf_flag(call->conf, "yes");
    if (!rc)
        rc = mfs_scale_call(call, &what, err);
    if (rc == -EOWNERDEAD && !what.yes && mfs_agree(err->msg)) {
        what.yes = true;
        rc = mfs_scale_call(call, &what, err);
    }
    free(what.node);
    return rc;
}

static int run_drain(struct mfs_verb_call *call, struct mfs_err *err)
{
    return run(call, "drain", err);
}

static int run_forget(struct mfs_verb_call *call, struct mfs_err *err)
{
    return run(call, "forget", err);
}

static int run_replace(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_msg_scale what = {.how = MFS_SCALE_REPLACE};
    int rc = take_names(call, 1, &what, err);

    if (!rc && call->nargs == 2 && mfs_text_copy(what.host, sizeof what.host, call->args[1]))
        rc = mfs_err_set(err, -EINVAL, "no machine has so long a name: %s", call->args[1]);
    if (!rc)
        rc = mfs_scale_call(call, &what, err);
    free(what.node);
    return rc;
}

const struct mfs_verb mfs_cm_drain = {
    .name = "drain",
    .args = "NODE...",
    .summary = "have these nodes give their partitions to the others, and leave",
    .about =
        "Takes nodes out, by name, address or host (see cm status): their partitions move to the\n"
        "others while files stay usable, then their mounts, their processes and the nodes\n"
        "themselves go. Refused, with the figures, when the others can't hold the data.\n"
        "Returns when all is done; when it is killed, the change goes on, and the same call\n"
        "waits for its end.",
    .least = 1,
    .most = MFS_PARTITIONS_MAX,
    .options = MFS_OPTIONS(mfs_cm_scale_options, mfs_json_options, mfs_deployment_options),
    .run = run_drain};

const struct mfs_verb mfs_cm_replace = {
    .name = "replace",
    .args = "OLD [HOST]",
    .summary = "have a new node come in the place of this one",
    .about =
        "A node is started, on HOST if one of cm start --hosts is named; when it is there, OLD\n"
        "(by name, address or host) gives its partitions away and leaves, as by cm drain, while\n"
        "files stay usable. An OLD that is dead is forgotten instead, with nothing lost if\n"
        "replicas have taken over what it had; else this is refused. When no node comes, all\n"
        "stays as it was. cm scale --cancel gives it up: before partitions move, the new node\n"
        "goes again; later both stay, each with what it has by then.",
    .least = 1,
    .most = 2,
    .options = MFS_OPTIONS(mfs_cm_scale_options, mfs_json_options, mfs_deployment_options),
    .run = run_replace};

static const struct mfs_conf_option forget_options[] = {
    {"yes", MFS_CONF_FLAG, NULL, NULL, 0, 0,
     "also if they have partitions without a replica, whose content is lost then"},
    {"dry-run", MFS_CONF_FLAG, NULL, NULL, 0, 0, "say whether it can be done, change nothing"},
    {0}};

const struct mfs_verb mfs_cm_forget = {
    .name = "forget",
    .args = "NODE...",
    .summary = "forget nodes that are dead",
    .about = "Takes nodes out that are not there and will not come back, by name or address (see\n"
             "cm status); changes of nodes are possible again after that. With replicas nothing\n"
             "is lost. Without, their partitions begin empty on the other nodes: asks before, or\n"
             "needs --yes. memefs lost lists the files of which bytes are lost then, and memefs\n"
             "fsck --repair mends names that led there. Refused while a node's lm is connected\n"
             "(cm drain takes such a node out). One that comes back after all is told to end what\n"
             "it runs.",
    .destroys = true,
    .least = 1,
    .most = MFS_PARTITIONS_MAX,
    .options = MFS_OPTIONS(forget_options, mfs_json_options, mfs_deployment_options),
    .run = run_forget};
