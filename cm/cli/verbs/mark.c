/* `cm mark`: notes that a stage of the work begins. */
#include "base/clock.h"
#include "base/text.h"
#include "cm/ask/client.h"
#include "cm/cli/verbs.h"
#include "cm/state/mark.h"

#define TIME_LIMIT (10 * MFS_SEC)

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_msg_mark m = {0};
    struct mfs_msg_empty reply;
    int rc = mfs_mark_check(call->args[0], err);

    if (rc) {
        call->usage = true;
        return rc;
    }
    mfs_text_copy(m.text, sizeof m.text, call->args[0]);
    return mfs_client_call(&call->paths, MFS_MSG_MARK, &m, TIME_LIMIT, &reply, err);
}

const struct mfs_verb mfs_cm_mark = {.name = "mark",
                                     .args = "TEXT",
                                     .summary = "note that a stage of the work begins",
                                     .least = 1,
                                     .most = 1,
                                     .options = MFS_OPTIONS(mfs_deployment_options),
                                     .run = run};
