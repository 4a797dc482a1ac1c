/* A command that a provider runs to its end: bounded, with its output read or in cm.log. The loop's
 * thread. */
#ifndef MFS_CM_PROVIDER_RUN_H
#define MFS_CM_PROVIDER_RUN_H

#include "cm/provider/provider.h"

struct mfs_run;

/* What tells the end, once and from the loop, unless the command is dropped: `why` is NULL, or why
 * it failed ("exited with status 3"); `output` is what it has printed (stderr, too), or "". */
typedef void mfs_run_done(void *arg, const struct mfs_err *why, const char *output);

/* How a command is run, beside what it is. */
struct mfs_run_options {
    int64_t limit; /* ns; then it is killed with all that it has started, which is a failure, too */
    bool read;     /* its output is for `done`, up to MFS_RUN_OUTPUT_MAX bytes; else for cm.log */
    bool secret;   /* it is given the deployment's secret, as lms are; only with `read` */
};

#define MFS_RUN_OUTPUT_MAX (1U << 20)

/* NULL with the reason. */
struct mfs_run *mfs_run_begin(const struct mfs_provider_context *c, const char *const *argv,
                              const struct mfs_run_options *o, mfs_run_done *done, void *arg,
                              struct mfs_err *err);

/* The path of a program that is installed beside cm. 0 or a negative errno. */
int mfs_run_sibling(const char *name, char *out, size_t n);

/* The last line of what a command has printed, for a message; "" for none. Pure. */
void mfs_run_last_line(const char *text, char *out, size_t n);

/* Ends it at once, with all that it has started; `done` is told as ever. */
void mfs_run_kill(struct mfs_run *r);

/* The command goes on, and nothing is told of it. Takes NULL; not after `done`. */
void mfs_run_drop(struct mfs_run *r);

#endif
