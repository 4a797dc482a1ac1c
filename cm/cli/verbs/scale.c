/* `cm scale N|+K|-K`: more nodes, or fewer. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "cluster/placement.h"
#include "cm/cli/scale_call.h"
#include "cm/cli/verbs.h"

static int cancel(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_msg_scale what = {.how = MFS_SCALE_CANCEL};

    if (!call->nargs)
        return mfs_scale_call(call, &what, err);
    call->usage = true;
    return mfs_err_set(err, -EINVAL, "--cancel takes no number");
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    const char *text = call->nargs ? call->args[0] : "", *how = "to";
    struct mfs_msg_scale what = {0};
    uint64_t n = 0;

    if (mfs_conf_flag(call->conf, "cancel"))
        return cancel(call, err);
    if (*text == '+')
        how = "out";
    else if (*text == '-')
        how = "in";
    if (mfs_text_u64(text + (*how != 't'), &n) || !n || n > MFS_PARTITIONS_MAX) {
        call->usage = true;
        return mfs_err_set(err, -EINVAL,
                           "%s%s%show many nodes? N, or +K or -K for so many more or fewer",
                           *text ? "\"" : "", text, *text ? "\": " : "");
    }
    what.n = (uint32_t)n;
    mfs_text_copy(what.how, sizeof what.how, how);
    return mfs_scale_call(call, &what, err);
}

static const struct mfs_conf_option cancel_options[] = {
    {"cancel", MFS_CONF_FLAG, NULL, NULL, 0, 0,
     "give up the change that is under way: nodes that come go again, no more partitions move"},
    {0}};

const struct mfs_verb mfs_cm_scale = {
    .name = "scale",
    .args = "N|+K|-K|--cancel",
    .summary = "have N nodes, or so many more or fewer; returns when data and tables are in place",
    .most = 1,
    .options =
        MFS_OPTIONS(cancel_options, mfs_cm_scale_options, mfs_json_options, mfs_deployment_options),
    .run = run};
