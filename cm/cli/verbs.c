/* The verbs. */
#include "cm/cli/verbs.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "cm/cli/options.h"

#define OPTIONS(...)                                                                               \
    (const struct mfs_conf_option *const[])                                                        \
    {                                                                                              \
        __VA_ARGS__, mfs_deployment_options, mfs_cm_common_options, NULL                           \
    }

const struct mfs_verb mfs_cm_verbs[] = {
    {"start", "", "start a deployment; returns when every node is up and every mount answers", 0,
     OPTIONS(mfs_cm_start_options, mfs_cm_run_options), mfs_cmd_start, false},
    {"status", "", "show the nodes, their memory, partitions and shares", 0,
     OPTIONS(mfs_cm_json_options), mfs_cmd_status, false},
    {"scale", "N|+K|-K",
     "have N nodes, or so many more or fewer; returns when data and tables are in place", 1,
     OPTIONS(mfs_cm_scale_options, mfs_cm_json_options), mfs_cmd_scale, false},
    {"rebalance", "", "move partitions until every node has its share", 0,
     OPTIONS(mfs_cm_scale_options, mfs_cm_json_options), mfs_cmd_rebalance, false},
    {"policy", "[NAME]", "show or change how it grows and shrinks by itself", 1,
     (const struct mfs_conf_option *const[]){mfs_deployment_options, mfs_cm_common_options, NULL},
     mfs_cmd_policy, false},
    {"events", "", "show what has happened", 0, OPTIONS(mfs_cm_follow_options, mfs_cm_json_options),
     mfs_cmd_events, false},
    {"checkpoint", "DIR", "write all that is stored to a directory, for cm start --restore", 1,
     OPTIONS(mfs_cm_json_options), mfs_cmd_checkpoint, false},
    {"doctor", "", "say what is wrong with this machine or the deployment, and how to mend it", 0,
     OPTIONS(mfs_cm_json_options), mfs_cmd_doctor, false},
    {"stop", "", "unmount, stop every process of the deployment, remove its state", 0,
     OPTIONS(mfs_cm_stop_options), mfs_cmd_stop, true},
    {"simulate", "", NULL, 0, OPTIONS(mfs_cm_simulate_options), mfs_cmd_simulate, false},
    {"daemon", "", NULL, 0,
     (const struct mfs_conf_option *const[]){mfs_deployment_options, mfs_cm_common_options, NULL},
     mfs_cmd_daemon, false},
    {0}};

const struct mfs_verb *mfs_verb_find(const char *name, struct mfs_err *err)
{
    unsigned best = (unsigned)strlen(name) / 2 + 1;
    const struct mfs_verb *near = NULL;

    for (const struct mfs_verb *v = mfs_cm_verbs; v->name; v++) {
        unsigned d = mfs_text_distance(name, v->name);

        if (!d)
            return v;
        if (d < best && v->help && !v->destroys) {
            best = d;
            near = v;
        }
    }
    if (near)
        mfs_err_set(err, -EINVAL, "unknown command \"%s\", did you mean %s?", name, near->name);
    else
        mfs_err_set(err, -EINVAL, "unknown command \"%s\" (see cm --help)", name);
    return NULL;
}

void mfs_verb_help(const struct mfs_verb *v, FILE *to)
{
    fprintf(to, "usage: cm %s [OPTION]...%s%s\n\n%s\n\nOptions:\n", v->name, *v->args ? " " : "",
            v->args, v->help ? v->help : "for internal use");
    mfs_conf_help(v->options, to);
}

void mfs_verbs_help(FILE *to)
{
    fprintf(to, "usage: cm COMMAND [OPTION]...\n\n"
                "Starts, watches and stops a MemEFS deployment.\n\nCommands:\n");
    for (const struct mfs_verb *v = mfs_cm_verbs; v->name; v++)
        if (v->help)
            fprintf(to, "  %-10s %s\n", v->name, v->help);
    fprintf(to,
            "\n\"cm COMMAND --help\" shows a command's options; \"cm --version\" the version.\n");
}
