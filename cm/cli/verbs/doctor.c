/* `cm doctor`: what is wrong with this machine or with a deployment, and how to mend it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cm/doctor/impl.h"
#include "cm/cli/render.h"
#include "cm/cli/verbs.h"
#include "cm/provider/options.h"
#include "cm/provider/provider.h"

/* What advised commands need to mean the same deployment. */
static int name_it(struct mfs_doctor_case *c, const struct mfs_conf *conf)
{
    const char *name = mfs_conf_given(conf, "name") ? c->paths->name : NULL;
    const char *dir = mfs_conf_given(conf, "state-dir") ? c->paths->dir : NULL;

    return mfs_text_format(c->which, sizeof c->which, "%s%s%s%s", name ? " --name " : "",
                           name ? name : "", dir ? " --state-dir " : "",
                           dir ? MFS_DOCTOR_QUOTED(dir) : "");
}

/* Those of --hosts, before there is a deployment; else those of the deployment. */
static int examine_places(struct mfs_doctor_case *c, struct mfs_conf *conf, struct mfs_err *err)
{
    const struct mfs_provider *p = mfs_provider_find(c->state.provider);
    struct mfs_provider_option *list = NULL;
    uint32_t n = 0;
    int rc;

    if (!mfs_conf_given(conf, "hosts")) {
        if (p)
            mfs_doctor_places(c->d, p, c->state.provider_option, c->state.nprovider_options);
        return 0;
    }
    p = &mfs_provider_ssh;
    rc = p->environment(conf, err);
    if (!rc)
        rc = p->check(conf, err);
    if (!rc)
        rc = mfs_provider_take_options(p, conf, &list, &n, err);
    if (!rc)
        mfs_doctor_places(c->d, p, list, n);
    free(list);
    return rc;
}

static int examine(struct mfs_doctor_case *c, struct mfs_conf *conf, struct mfs_err *err)
{
    int rc;

    mfs_doctor_directory(c);
    mfs_doctor_machine(c);
    mfs_doctor_cgroup(c);
    mfs_doctor_programs(c);
    rc = examine_places(c, conf, err);
    if (!rc && c->there)
        mfs_doctor_deployment(c);
    mfs_schema_clear(&mfs_status_schema, &c->status);
    mfs_secret_free(&c->secret);
    mfs_cm_state_clear(&c->state);
    free(c->node);
    return rc;
}

static int show(const struct mfs_doctor *d, bool json, struct mfs_err *err)
{
    struct mfs_buf b;

    mfs_buf_init(&b);
    return mfs_render_print(mfs_doctor_render(d, json, &b), &b, err);
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_doctor_case c = {.d = mfs_doctor_create(), .paths = &call->paths};
    size_t bad;
    int rc;

    if (!c.d)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    mfs_log_open("cm", NULL, MFS_LOG_ERROR);
    rc = name_it(&c, call->conf);
    if (rc)
        mfs_err_set(err, rc, "%s: %s", call->paths.dir, strerror(-rc));
    else
        rc = examine(&c, call->conf, err);
    call->usage = rc == -EINVAL;
    if (!rc)
        rc = show(c.d, mfs_conf_flag(call->conf, "json"), err);
    bad = mfs_doctor_count(c.d, MFS_DOCTOR_FAIL);
    mfs_doctor_destroy(c.d);
    if (!rc && bad)
        rc = mfs_err_set(err, -EIO, "%zu of the checks failed", bad);
    return rc;
}

const struct mfs_verb mfs_cm_doctor = {
    .name = "doctor",
    .summary = "say what is wrong with this machine or the deployment, and how to mend it",
    .options = MFS_OPTIONS(mfs_json_options, mfs_ssh_options, mfs_deployment_options),
    .run = run};
