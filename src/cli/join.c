#include "base/clock.h"
#include "cli/verbs.h"
#include "client/client.h"

#define TABLE_WAIT (10 * MFS_SEC)

int mfs_verb_join(struct mfs_client **client, const struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_client_opts opts = {
        .paths = &call->paths, .label = call->verb->name, .table_wait = TABLE_WAIT};

    return mfs_client_create(client, &opts, err);
}
