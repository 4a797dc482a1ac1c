/* The verbs of cm, in one table. */
#ifndef MFS_CM_CLI_VERBS_H
#define MFS_CM_CLI_VERBS_H

#include <stdio.h>

#include "args/conf.h"
#include "args/paths.h"

/* What main() passes on. */
struct mfs_verb_call {
    struct mfs_conf *conf;
    struct mfs_paths paths;
    char **args; /* those that are no options */
    int nargs;
    bool usage; /* set by the verb when it fails because it was called wrongly: exit status 2 */
};

struct mfs_verb {
    const char *name, *args, *help; /* help NULL: hidden. name NULL ends the table */
    int nargs;                      /* at most */
    const struct mfs_conf_option *const *options;
    /* 0 or a negative errno with the sentence for the user. */
    int (*run)(struct mfs_verb_call *call, struct mfs_err *err);
    bool destroys; /* files go with it: it is not what somebody meant that mistyped another */
};

extern const struct mfs_verb mfs_cm_verbs[];

/* Finds the verb, or NULL with "unknown command …, did you mean …?". */
const struct mfs_verb *mfs_verb_find(const char *name, struct mfs_err *err);
void mfs_verb_help(const struct mfs_verb *v, FILE *to);
void mfs_verbs_help(FILE *to);

int mfs_cmd_start(struct mfs_verb_call *call, struct mfs_err *err);
int mfs_cmd_status(struct mfs_verb_call *call, struct mfs_err *err);
int mfs_cmd_scale(struct mfs_verb_call *call, struct mfs_err *err);
int mfs_cmd_rebalance(struct mfs_verb_call *call, struct mfs_err *err);
int mfs_cmd_events(struct mfs_verb_call *call, struct mfs_err *err);
int mfs_cmd_policy(struct mfs_verb_call *call, struct mfs_err *err);
int mfs_cmd_simulate(struct mfs_verb_call *call, struct mfs_err *err);
int mfs_cmd_checkpoint(struct mfs_verb_call *call, struct mfs_err *err);
int mfs_cmd_doctor(struct mfs_verb_call *call, struct mfs_err *err);
int mfs_cmd_stop(struct mfs_verb_call *call, struct mfs_err *err);
int mfs_cmd_daemon(struct mfs_verb_call *call, struct mfs_err *err);

#endif
