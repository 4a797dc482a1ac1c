/* A command that a provider runs to its end: bounded, with its output in cm.log. The loop's thread.
 */
#ifndef MFS_CM_PROVIDER_RUN_H
#define MFS_CM_PROVIDER_RUN_H

#include "cm/provider/provider.h"

struct mfs_run;

/* `done` is called once from the loop, unless it is dropped: with NULL, or with why it failed
 * ("exited with status 3"). After `limit` ns it is killed with all that it has started, which is a
 * failure, too. NULL with the reason. */
struct mfs_run *mfs_run_begin(const struct mfs_provider_context *c, const char *const *argv,
                              int64_t limit, void (*done)(void *arg, const struct mfs_err *why),
                              void *arg, struct mfs_err *err);

/* The command goes on, and nothing is told of it. Takes NULL; not after `done`. */
void mfs_run_drop(struct mfs_run *r);

#endif
