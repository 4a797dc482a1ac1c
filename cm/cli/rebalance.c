/* `cm rebalance`: moves partitions until every node has its share. */
#include "cm/cli/scale_call.h"
#include "cm/cli/verbs.h"

int mfs_cmd_rebalance(struct mfs_verb_call *call, struct mfs_err *err)
{
    return mfs_scale_call(call, "rebalance", 0, err);
}
