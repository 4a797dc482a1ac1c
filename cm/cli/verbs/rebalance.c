/* `cm rebalance`: moves partitions until every node has its share. */
#include "cm/cli/scale_call.h"
#include "cm/cli/verbs.h"

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_msg_scale what = {.how = "rebalance"};

    return mfs_scale_call(call, &what, err);
}

const struct mfs_verb mfs_cm_rebalance = {
    .name = "rebalance",
    .summary = "move partitions until every node has its share",
    .options = MFS_OPTIONS(mfs_cm_scale_options, mfs_json_options, mfs_deployment_options),
    .run = run};
