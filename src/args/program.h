/* The frame of a command line: a program has verbs, a verb has options (args/conf.h) and arguments;
 * help, messages and exit statuses come from these tables. Every verb also takes --help, -h and
 * --version.
 *
 * Exit status: 0 done, 1 failed, 2 called wrongly; with 1 or 2 a line on stderr says why, but where
 * the verb has returned the status itself. */
#ifndef MFS_ARGS_PROGRAM_H
#define MFS_ARGS_PROGRAM_H

#include <stdbool.h>
#include <stdio.h>

#include "args/conf.h"
#include "args/paths.h"
#include "base/err.h"

enum { MFS_EXIT_OK = 0, MFS_EXIT_FAILED = 1, MFS_EXIT_USAGE = 2 };

#define MFS_OPTIONS(...) ((const struct mfs_conf_option *const[]){__VA_ARGS__, NULL})

extern const struct mfs_conf_option mfs_json_options[]; /* --json */

struct mfs_verb;

/* What a verb is called with. */
struct mfs_verb_call {
    const struct mfs_verb *verb;
    struct mfs_conf *conf;
    struct mfs_paths paths; /* of the deployment; empty for verbs without mfs_deployment_options */
    char **args;            /* those that are no options; NULL behind the last */
    int nargs;
    bool usage; /* set by the verb when it fails because it was called wrongly */
};

struct mfs_verb {
    const char *name;    /* "": the program's only one, which is not named */
    const char *args;    /* its arguments, for the help; NULL: none */
    const char *summary; /* a line; NULL: not listed */
    const char *about;   /* paragraphs for its own help; NULL: the summary */
    int least, most;     /* so many arguments */
    bool destroys;       /* files go with it: it is never suggested for a mistyped one */
    const struct mfs_conf_option *const *options;
    /* 0, an exit status, or a negative errno with the sentence for the user. */
    int (*run)(struct mfs_verb_call *call, struct mfs_err *err);
    void (*help)(FILE *to); /* what its help has behind the options; may be NULL */
};

struct mfs_program {
    const char *name, *summary;
    const struct mfs_verb *const *verbs; /* NULL behind the last */
    /* Before each verb; may be NULL. 0, or a negative errno with the sentence. */
    int (*prepare)(struct mfs_verb_call *call, struct mfs_err *err);
};

/* Runs what argv (ending with NULL) asks for. The exit status. */
int mfs_program_run(const struct mfs_program *p, int argc, char **argv);

/* Finds a verb, or NULL with "unknown command …, did you mean …?". */
const struct mfs_verb *mfs_program_find(const struct mfs_program *p, const char *name,
                                        struct mfs_err *err);

#endif
