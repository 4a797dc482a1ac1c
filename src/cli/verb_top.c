/* memefs top: a live screen of what a mount does; without a terminal, or with --once, one sample as
 * text or JSON. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/top/sampler.h"
#include "cli/top/screen.h"
#include "cli/verbs.h"
#include "show/paint.h"

#define STEP (1 * MFS_SEC)

static int print(const struct mfs_mount_top *t, bool json, struct mfs_err *err)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = json ? mfs_mount_top_json(t, &b) : mfs_mount_top_text(t, &b);
    if (rc == 0)
        fwrite(mfs_buf_data(&b), 1, mfs_buf_len(&b), stdout);
    mfs_buf_fini(&b);
    return rc < 0 ? mfs_err_set(err, rc, "out of memory") : 0;
}

/* Two readings, a second apart. */
static int show_once(const struct mfs_mount_files *files, bool json, struct mfs_err *err)
{
    struct mfs_mount_sampler *s = mfs_mount_sampler_create(files);
    struct mfs_mount_top *top;
    int rc;

    if (s == NULL)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    err->code = 0;
    top = mfs_mount_sampler_take(s, err);
    if (top != NULL) {
        mfs_mount_top_free(top);
        mfs_clock_sleep(STEP);
        top = mfs_mount_sampler_take(s, err);
    }
    rc = top != NULL ? print(top, json, err) : err->code;
    mfs_mount_top_free(top);
    mfs_mount_sampler_destroy(s);
    return rc;
}

static int show_live(const struct mfs_mount_files *files, struct mfs_err *err)
{
    struct mfs_mount_view view = {0};
    struct mfs_live live = {.take = mfs_mount_sampler_take,
                            .source = mfs_mount_sampler_create(files),
                            .destroy = mfs_mount_sampler_destroy,
                            .free_sample = mfs_mount_top_free,
                            .draw = mfs_mount_screen_draw,
                            .key = mfs_mount_screen_key,
                            .paused = mfs_mount_screen_paused,
                            .view = &view};

    return live.source != NULL ? mfs_live_run(&live, err)
                               : mfs_err_set(err, -ENOMEM, "out of memory");
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_mount_files *files = calloc(1, sizeof *files);
    bool json = mfs_conf_flag(call->conf, "json");
    int rc;

    if (files == NULL)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    rc = mfs_mount_files_open(call->nargs > 0 ? call->args[0] : NULL, files, err);
    if (rc == 0) {
        rc = json || mfs_conf_flag(call->conf, "once") || !mfs_paint_can()
                 ? show_once(files, json, err)
                 : show_live(files, err);
        mfs_mount_files_close(files);
    }
    free(files);
    return rc;
}

static const struct mfs_conf_option options[] = {
    {"once", MFS_CONF_FLAG, NULL, NULL, 0, 0, "one sample as text, as where there is no terminal"},
    {0}};

const struct mfs_verb mfs_verb_top = {.name = "top",
                                      .args = "[MOUNT]",
                                      .summary = "watch on the terminal what a mount does",
                                      .about = "Shows, anew each second, what the mount at MOUNT "
                                               "(without it, the only one on this machine)\n"
                                               "does: operations each second and how long they "
                                               "take, by kind; and, for root and the mount's\n"
                                               "owner, the files, directories and processes with "
                                               "the most requests, from samples. h tells\n"
                                               "the keys. cm top shows the whole deployment.",
                                      .most = 1,
                                      .options = MFS_OPTIONS(mfs_json_options, options),
                                      .run = run};
