/* `cm leave`: cm goes on at another machine, as what it was started in is about to end. */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "cm/ask/client.h"
#include "cm/cli/verbs.h"

#define TIME_LIMIT (60 * MFS_SEC) /* for one node after another to try */

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_msg_empty reply;
    int rc = mfs_client_call(&call->paths, MFS_MSG_ADOPT, NULL, TIME_LIMIT, &reply, err);

    if (!rc)
        printf("%s: cm goes on at another machine\n", call->paths.name);
    return rc;
}

const struct mfs_verb mfs_cm_leave = {
    .name = "leave",
    .summary = "have cm go on at another machine, where a node stays, as this job ends",
    .options = MFS_OPTIONS(mfs_deployment_options),
    .run = run};
