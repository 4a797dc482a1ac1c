/* `cm status`: what the deployment is and how its nodes do. */
#include "base/clock.h"
#include "cm/ask/client.h"
#include "cm/cli/render.h"
#include "cm/cli/verbs.h"

#define TIME_LIMIT (10 * MFS_SEC)

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_status s;
    struct mfs_buf b;
    int rc = mfs_client_call(&call->paths, MFS_MSG_STATUS, NULL, TIME_LIMIT, &s, err);

    if (rc)
        return rc;
    mfs_buf_init(&b);
    rc = mfs_conf_flag(call->conf, "json") ? mfs_render_json(&mfs_status_schema, &s, &b)
                                           : mfs_render_status(&s, &b);
    rc = mfs_render_print(rc, &b, err);
    mfs_schema_clear(&mfs_status_schema, &s);
    return rc;
}

const struct mfs_verb mfs_cm_status = {
    .name = "status",
    .summary = "show the nodes, their memory, partitions and shares",
    .options = MFS_OPTIONS(mfs_json_options, mfs_deployment_options),
    .run = run};
