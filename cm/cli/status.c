/* `cm status`: what the deployment is and how its nodes do. */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "cm/ask/client.h"
#include "cm/cli/render.h"
#include "cm/cli/verbs.h"

#define TIME_LIMIT (10 * MFS_SEC)

int mfs_cmd_status(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_status s;
    struct mfs_buf b;
    int rc = mfs_client_call(&call->paths, MFS_MSG_STATUS, NULL, TIME_LIMIT, &s, err);

    if (rc)
        return rc;
    mfs_buf_init(&b);
    if (mfs_conf_flag(call->conf, "json")) {
        rc = mfs_schema_encode(&mfs_status_schema, &s, false, &b);
        if (!rc)
            rc = mfs_buf_append(&b, "\n", 1);
    } else {
        rc = mfs_render_status(&s, &b);
    }
    if (rc)
        mfs_err_set(err, rc, "out of memory");
    else
        fwrite(mfs_buf_data(&b), 1, mfs_buf_len(&b), stdout);
    mfs_buf_fini(&b);
    mfs_schema_clear(&mfs_status_schema, &s);
    return rc;
}
