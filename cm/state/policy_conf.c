/* A policy from the options. */
#include "cm/state/policy_conf.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cm/state/differs.h"

static const struct {
    const char *key;
    size_t offset;
    double unit;
} reals[] = {{"scale-out-at", offsetof(struct mfs_policy_settings, out_at), 0.01},
             {"scale-out-step", offsetof(struct mfs_policy_settings, out_step), 0.01},
             {"scale-in-at", offsetof(struct mfs_policy_settings, in_at), 0.01},
             {"scale-in-step", offsetof(struct mfs_policy_settings, in_step), 0.01},
             {"scale-in-to", offsetof(struct mfs_policy_settings, in_to), 0.01},
             {"scale-window", offsetof(struct mfs_policy_settings, window), 1},
             {"scale-settle", offsetof(struct mfs_policy_settings, settle), 1}};

#define NREALS (sizeof reals / sizeof *reals)

/* What was given; the rest stays 0. */
static void take(const struct mfs_conf *conf, struct mfs_policy_settings *s)
{
    *s = (struct mfs_policy_settings){0};
    if (mfs_conf_given(conf, "min-nodes"))
        s->min_nodes = (uint32_t)mfs_conf_uint(conf, "min-nodes");
    if (mfs_conf_given(conf, "max-nodes"))
        s->max_nodes = (uint32_t)mfs_conf_uint(conf, "max-nodes");
    for (size_t i = 0; i < NREALS; i++)
        if (mfs_conf_given(conf, reals[i].key))
            *(double *)((char *)s + reals[i].offset) =
                mfs_conf_real(conf, reals[i].key) * reals[i].unit;
}

int mfs_policy_ready(const struct mfs_cm_state *s, const char *name, struct mfs_policy *p,
                     struct mfs_policy_settings *numbers, struct mfs_err *err)
{
    int rc = mfs_policy_parse(name, p, err);

    return rc ? rc : mfs_policy_settle(p, &s->scaling, s->started_with, s->nparts, numbers, err);
}

int mfs_policy_choose(const struct mfs_conf *conf, struct mfs_cm_state *s, struct mfs_err *err)
{
    struct mfs_policy_settings numbers;
    struct mfs_policy p;

    take(conf, &s->scaling);
    mfs_text_copy(s->policy, sizeof s->policy, mfs_conf_str(conf, "policy"));
    return mfs_policy_ready(s, s->policy, &p, &numbers, err);
}

int mfs_policy_compare(const struct mfs_conf *conf, const struct mfs_cm_state *s,
                       struct mfs_err *err)
{
    struct mfs_policy_settings asked;

    if (mfs_conf_given(conf, "policy") && strcmp(mfs_conf_str(conf, "policy"), s->policy))
        return mfs_state_differs(err, "policy", s->policy);
    take(conf, &asked);
    for (size_t i = 0; i < NREALS; i++) {
        double want = *(const double *)((const char *)&asked + reals[i].offset),
               has = *(const double *)((const char *)&s->scaling + reals[i].offset);

        if (want > 0 && fabs(want - has) > 1e-9)
            return mfs_state_differs(err, reals[i].key, NULL);
    }
    if (asked.min_nodes && asked.min_nodes != s->scaling.min_nodes)
        return mfs_state_differs(err, "min-nodes", NULL);
    return 0;
}

void mfs_policy_tell(const struct mfs_policy_settings *s, mfs_option_fn *tell, void *arg)
{
    char text[32];

    for (size_t i = 0; i < NREALS; i++) {
        double has = *(const double *)((const char *)s + reals[i].offset);

        snprintf(text, sizeof text, "%g", has / reals[i].unit);
        if (has > 0)
            tell(arg, reals[i].key, text);
    }
    snprintf(text, sizeof text, "%u", s->min_nodes);
    if (s->min_nodes)
        tell(arg, "min-nodes", text);
    snprintf(text, sizeof text, "%u", s->max_nodes);
    if (s->max_nodes)
        tell(arg, "max-nodes", text);
}
