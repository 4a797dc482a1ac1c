/* What the verbs need of a deployment that may run: its cm, found by the state directory. Blocks.
 */
#ifndef MFS_CM_ASK_CLIENT_H
#define MFS_CM_ASK_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/proc.h"
#include "args/paths.h"
#include "net/auth.h"
#include "proto/messages.h"

/* The daemon's process, if it runs; else pid 0. */
struct mfs_proc mfs_client_daemon(const struct mfs_paths *p);

/* Starts one, which goes on from what is recorded. Its process, pid 0 when it has ended already.
 * Does not wait for it to answer. 0 or a negative errno with the reason. */
int mfs_client_start_daemon(const struct mfs_paths *p, struct mfs_proc *daemon,
                            struct mfs_err *err);

/* The same by a command (words, then NULL), whose process is *front, and which lasts as long as the
 * daemon. Waits until that has begun. */
int mfs_client_start_daemon_by(const struct mfs_paths *p, const char *const *command,
                               struct mfs_proc *front, struct mfs_proc *daemon,
                               struct mfs_err *err);

/* Where the deployment's cm listens, and its secret, which is the caller's to free. 0, -ESRCH with
 * a sentence when there is no such deployment, or another negative errno with the reason. */
int mfs_client_find(const struct mfs_paths *p, char address[MFS_ADDRESS_MAX],
                    struct mfs_secret *secret, struct mfs_err *err);

/* Is its cm on another machine, as far as the copy of a node here tells, and where? */
bool mfs_client_is_elsewhere(const struct mfs_paths *p, char address[MFS_ADDRESS_MAX]);

/* A call has failed with rc, and *err: where cm does not run, or answer, *err says so, with what to
 * do and `then` behind it. Returns -ESRCH then, else rc. */
int mfs_client_explain(const struct mfs_paths *p, int rc, const char *then, struct mfs_err *err);

/* mfs_call to the deployment's cm. -ESRCH with a sentence when there is no such deployment. */
int mfs_client_call(const struct mfs_paths *p, enum mfs_msg type, const void *body, int64_t timeout,
                    void *reply, struct mfs_err *err);

#endif
