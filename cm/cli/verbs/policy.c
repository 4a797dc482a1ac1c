/* `cm policy`: how the deployment grows and shrinks by itself. */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "cm/ask/client.h"
#include "cm/plan/policy.h"
#include "cm/cli/verbs.h"

#define TIME_LIMIT (10 * MFS_SEC)

static int show(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_status s;
    int rc = mfs_client_call(&call->paths, MFS_MSG_STATUS, NULL, TIME_LIMIT, &s, err);

    if (rc)
        return rc;
    printf("%s\n", s.policy);
    mfs_schema_clear(&mfs_status_schema, &s);
    return 0;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_msg_policy m = {0};
    struct mfs_msg_empty reply;
    struct mfs_policy p;
    int rc;

    if (!call->nargs)
        return show(call, err);
    rc = mfs_policy_parse(call->args[0], &p, err);
    if (rc) {
        call->usage = true;
        return rc;
    }
    mfs_text_copy(m.name, sizeof m.name, call->args[0]);
    rc = mfs_client_call(&call->paths, MFS_MSG_POLICY, &m, TIME_LIMIT, &reply, err);
    if (!rc)
        printf("%s: policy %s\n", call->paths.name, m.name);
    return rc;
}

const struct mfs_verb mfs_cm_policy = {.name = "policy",
                                       .args = "[NAME]",
                                       .summary =
                                           "show or change how it grows and shrinks by itself",
                                       .most = 1,
                                       .options = MFS_OPTIONS(mfs_deployment_options),
                                       .run = run};
