/* `cm checkpoint DIR`: cm has the nodes write the images, and we make a checkpoint of them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cm/ask/client.h"
#include "cm/cli/long_call.h"
#include "cm/cli/losses.h"
#include "cm/cli/render.h"
#include "cm/state/manifest.h"
#include "cm/state/options_of.h"
#include "cm/cli/verbs.h"

#define NOTE_TIME (10 * MFS_SEC)

/* What is shown in the end. */
struct report {
    char dir[PATH_MAX];
    uint32_t number, partitions, attempts;
    uint64_t bytes, epoch;
    double halted_ms, duration_ms;
};

static const struct mfs_schema report_schema = {
    "checkpoint report", sizeof(struct report),
    (const struct mfs_field[]){{.name = "dir", MFS_FIELD(STR, struct report, dir)},
                               {.name = "number", MFS_FIELD(U32, struct report, number)},
                               {.name = "partitions", MFS_FIELD(U32, struct report, partitions)},
                               {.name = "bytes", MFS_FIELD(U64, struct report, bytes)},
                               {.name = "epoch", MFS_FIELD(U64, struct report, epoch)},
                               {.name = "halted_ms", MFS_FIELD(F64, struct report, halted_ms)},
                               {.name = "attempts", MFS_FIELD(U32, struct report, attempts)},
                               {.name = "duration_ms", MFS_FIELD(F64, struct report, duration_ms)},
                               {0}}};

static int ask(struct mfs_verb_call *call, const struct mfs_manifest_draft *d,
               struct mfs_checkpoint *made, struct mfs_err *err)
{
    struct mfs_msg_checkpoint what = {0};
    struct mfs_long_call c = {.type = MFS_MSG_CHECKPOINT,
                              .body = &what,
                              .if_silent = "the checkpoint is given up",
                              .terminal = isatty(STDERR_FILENO),
                              .reply = made};
    int rc;

    mfs_text_copy(what.dir, sizeof what.dir, d->part);
    rc = mfs_long_call(&call->paths, &c, err);
    return rc && c.tried ? mfs_client_explain(&call->paths, rc, ", then try again", err) : rc;
}

static void describe(struct mfs_manifest *m, const char *name, const struct mfs_checkpoint *made)
{
    struct timespec now = mfs_clock_real();
    struct tm t;

    *m = (struct mfs_manifest){.format = MFS_MANIFEST_FORMAT,
                               .epoch = made->epoch,
                               .nodes = made->nodes,
                               .stripe_size = made->stripe_size,
                               .nparts = made->nparts,
                               .part = made->part};
    mfs_text_copy(m->version, sizeof m->version, MEMEFS_VERSION);
    mfs_text_copy(m->name, sizeof m->name, name);
    if (gmtime_r(&now.tv_sec, &t))
        strftime(m->time, sizeof m->time, "%Y-%m-%dT%H:%M:%SZ", &t);
}

/* What `cm start` is to be told when it begins with this. The caller frees m->option. */
static int add_options(const struct mfs_verb_call *call, struct mfs_manifest *m,
                       struct mfs_err *err)
{
    struct mfs_cm_state st;
    int rc = mfs_cm_state_load(&st, call->paths.state, err);

    if (rc)
        return rc;
    rc = mfs_options_of(&st, &m->option, &m->noptions);
    mfs_cm_state_clear(&st);
    return rc ? mfs_err_set(err, rc, "out of memory") : 0;
}

/* It is a checkpoint already; that cm knows of it is for its status only. */
static void tell(const struct mfs_paths *p, const char *dir, const struct mfs_manifest *m)
{
    struct mfs_msg_checkpointed what = {.number = m->number, .bytes = mfs_manifest_bytes(m)};
    char reply[sizeof(struct mfs_msg_empty)];
    struct mfs_err err;

    mfs_text_copy(what.dir, sizeof what.dir, dir);
    if (mfs_client_call(p, MFS_MSG_CHECKPOINTED, &what, NOTE_TIME, reply, &err))
        fprintf(stderr, "cm: checkpoint: it is made, but cm status will not know of it: %s\n",
                err.msg);
}

static int print(const struct mfs_verb_call *call, const struct report *r, struct mfs_err *err)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    if (mfs_conf_flag(call->conf, "json"))
        rc = mfs_render_json(&report_schema, r, &b);
    else
        rc = mfs_buf_printf(&b,
                            "%s: checkpoint %u: %u partitions, %s in %.2f s; writers waited "
                            "%.1f ms at most\n%s\n",
                            call->paths.name, r->number, r->partitions, MFS_TEXT_BYTES(r->bytes),
                            r->duration_ms / 1e3, r->halted_ms, r->dir);
    return mfs_render_print(rc, &b, err);
}

/* Bytes were lost since the former checkpoint: that matters as long as some are missed. */
static int check_losses(const struct mfs_verb_call *call, struct mfs_manifest_draft *d,
                        const struct mfs_manifest *m, struct mfs_err *err)
{
    bool any;
    int rc;

    if (!d->former[0] || mfs_manifest_losses(m) <= d->losses)
        return 0;
    rc = mfs_losses_find(&call->paths, &any, err);
    if (!rc && !any)
        d->losses = mfs_manifest_losses(m);
    return rc;
}

/* With the images written. */
static int commit(struct mfs_verb_call *call, struct mfs_manifest_draft *d,
                  const struct mfs_checkpoint *made, struct report *r, struct mfs_err *err)
{
    struct mfs_manifest m;
    int rc;

    describe(&m, call->paths.name, made);
    rc = add_options(call, &m, err);
    if (!rc)
        rc = check_losses(call, d, &m, err);
    if (!rc)
        rc = mfs_manifest_commit(d, &m, r->dir, err);
    free(m.option);
    if (rc)
        return rc;
    tell(&call->paths, r->dir, &m);
    r->number = m.number;
    r->partitions = m.nparts;
    r->bytes = mfs_manifest_bytes(&m);
    r->epoch = m.epoch;
    r->halted_ms = made->halted_ms;
    r->attempts = made->attempts;
    return 0;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    char address[MFS_ADDRESS_MAX];
    int64_t began = mfs_clock_mono();
    struct mfs_manifest_draft d;
    struct mfs_checkpoint made;
    struct mfs_secret secret;
    struct report r = {0};
    int rc;

    if (call->nargs != 1) {
        call->usage = true;
        return mfs_err_set(err, -EINVAL,
                           "where to: cm checkpoint DIR, on a file system that all "
                           "nodes share");
    }
    rc = mfs_client_find(&call->paths, address, &secret, err); /* before anything is made */
    if (!rc) {
        mfs_secret_free(&secret);
        rc = mfs_manifest_begin(&d, call->args[0], call->paths.name, err);
    }
    if (rc)
        return rc;
    rc = ask(call, &d, &made, err);
    if (!rc)
        rc = commit(call, &d, &made, &r, err);
    mfs_manifest_end(&d);
    mfs_schema_clear(&mfs_checkpoint_schema, &made);
    r.duration_ms = (double)(mfs_clock_mono() - began) / 1e6;
    return rc ? rc : print(call, &r, err);
}

const struct mfs_verb mfs_cm_checkpoint = {
    .name = "checkpoint",
    .args = "DIR",
    .summary = "write all that is stored to a directory, for cm start --restore",
    .most = 1,
    .options = MFS_OPTIONS(mfs_json_options, mfs_deployment_options),
    .run = run};
