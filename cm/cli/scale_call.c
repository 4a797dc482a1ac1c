/* What the command line's verbs about changes have in common. */
#include "cm/cli/scale_call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "cm/ask/client.h"
#include "cm/cli/long_call.h"
#include "cm/cli/render.h"

#define FAILURE_MAX (64U << 10)

const struct mfs_conf_option mfs_cm_scale_options[] = {
    {"migration", MFS_CONF_CHOICE, "hot|cold", NULL, 0, 0,
     "how partitions are moved (default: as the deployment was started)"},
    {"rate", MFS_CONF_SIZE, "SIZE", NULL, 1, 1125899906842624.0,
     "bytes/s at which one partition is copied, at most (default: likewise)"},
    {"dry-run", MFS_CONF_FLAG, NULL, NULL, 0, 0, "show the plan, change nothing"},
    {0}};

/* ---- the end --------------------------------------------------------------------------------- */

/* What cm has left for us: the ends of the logs of a node that did not come. */
static void show_logs(const struct mfs_paths *p, const struct mfs_err *err)
{
    const char *text, *rest;
    struct mfs_buf b;

    mfs_buf_init(&b);
    if (!mfs_file_read(p->failure, FAILURE_MAX, &b) && !mfs_buf_append(&b, "", 1)) {
        text = mfs_buf_data(&b);
        rest = strchr(text, '\n');
        if (rest && !strncmp(text, err->msg, (size_t)(rest - text)))
            fputs(rest + 1, stderr);
    }
    mfs_buf_fini(&b);
}

static int print(const struct mfs_verb_call *call, const struct mfs_scale_report *r, bool dry_run,
                 struct mfs_err *err)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_conf_flag(call->conf, "json") ? mfs_render_json(&mfs_scale_report_schema, r, &b)
                                           : mfs_render_scale(call->paths.name, r, dry_run, &b);
    return mfs_render_print(rc, &b, err);
}

int mfs_scale_call(struct mfs_verb_call *call, struct mfs_msg_scale *what, struct mfs_err *err)
{
    struct mfs_scale_report report;
    struct mfs_long_call ask = {.type = MFS_MSG_SCALE,
                                .body = what,
                                .if_silent = "the change goes on when it does (see cm status)",
                                .reply = &report};
    int rc;

    what->dry_run = mfs_conf_flag(call->conf, "dry-run");
    ask.terminal = isatty(STDERR_FILENO) && !what->dry_run;
    if (mfs_conf_knows(call->conf, "migration") && mfs_conf_given(call->conf, "migration"))
        mfs_text_copy(what->migration, sizeof what->migration,
                      mfs_conf_str(call->conf, "migration"));
    if (mfs_conf_knows(call->conf, "rate") && mfs_conf_given(call->conf, "rate"))
        what->rate = mfs_conf_uint(call->conf, "rate");
    rc = mfs_long_call(&call->paths, &ask, err);
    if (!rc) {
        rc = print(call, &report, what->dry_run, err);
    } else if (ask.tried) {
        show_logs(&call->paths, err);
        rc = mfs_client_explain(&call->paths, rc, ask.begun ? ", and it goes on" : "", err);
    }
    mfs_schema_clear(&mfs_scale_report_schema, &report);
    return rc;
}
