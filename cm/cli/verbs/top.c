/* `cm top`: a live screen; without a terminal, or with --once, one sample as text or JSON. */
#include <errno.h>

#include "base/clock.h"
#include "cm/ask/client.h"
#include "cm/cli/render.h"
#include "cm/cli/top/sampler.h"
#include "cm/cli/top/screen.h"
#include "cm/cli/verbs.h"
#include "show/live.h"
#include "show/paint.h"

#define CHECK_LIMIT (10 * MFS_SEC)

static int show_once(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_top_sample s = {0};
    struct mfs_buf b;
    int rc = mfs_top_sample_once(&call->paths, &s, err);

    if (rc)
        return rc;
    mfs_buf_init(&b);
    rc = mfs_conf_flag(call->conf, "json") ? mfs_render_json(&mfs_top_schema, &s, &b)
                                           : mfs_top_render(&s, &b);
    rc = mfs_render_print(rc, &b, err);
    mfs_top_clear(&s);
    return rc;
}

static int run_screen(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_top_view view = {0};
    struct mfs_live live = {.take = mfs_top_sampler_take,
                            .source = mfs_top_sampler_create(&call->paths),
                            .destroy = mfs_top_sampler_destroy,
                            .free_sample = mfs_top_sample_free,
                            .draw = mfs_top_screen_draw,
                            .key = mfs_top_screen_key,
                            .paused = mfs_top_screen_paused,
                            .view = &view};

    return live.source ? mfs_live_run(&live, err) : mfs_err_set(err, -ENOMEM, "out of memory");
}

/* A wrong name, say, is told on the terminal as it is. */
static int check(const struct mfs_paths *p, struct mfs_err *err)
{
    struct mfs_status s;
    int rc = mfs_client_call(p, MFS_MSG_STATUS, NULL, CHECK_LIMIT, &s, err);

    if (!rc)
        mfs_schema_clear(&mfs_status_schema, &s);
    return rc;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    int rc;

    if (mfs_conf_flag(call->conf, "once") || mfs_conf_flag(call->conf, "json") || !mfs_paint_can())
        return show_once(call, err);
    rc = check(&call->paths, err);
    return rc ? rc : run_screen(call, err);
}

static const struct mfs_conf_option options[] = {
    {"once", MFS_CONF_FLAG, NULL, NULL, 0, 0, "one sample as text, as where there is no terminal"},
    {"json", MFS_CONF_FLAG, NULL, NULL, 0, 0, "one sample as JSON"},
    {0}};

const struct mfs_verb mfs_cm_top = {.name = "top",
                                    .summary = "watch nodes, moves and events on the terminal",
                                    .options = MFS_OPTIONS(options, mfs_deployment_options),
                                    .run = run};
