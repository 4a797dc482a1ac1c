/* Processes of this machine that stand for nodes, one for each: the lm itself, or what runs it
 * elsewhere (ssh, a step of a job) as long as it lives. Each is given the secret, and has a pid
 * file, by which a later cm finds it. For providers; the loop's thread. */
#ifndef MFS_CM_PROVIDER_CHILDREN_H
#define MFS_CM_PROVIDER_CHILDREN_H

#include "cm/provider/notices.h"

struct mfs_children;

/* Tells through the notices, which must live longer. NULL: ENOMEM. */
struct mfs_children *mfs_children_create(const struct mfs_provider_context *c,
                                         struct mfs_notices *notices);
void mfs_children_destroy(struct mfs_children *l); /* the processes go on. Takes NULL */

/* Runs argv for the node, its output in a log: the node's lm.log or, elsewhere, start-ID.log.
 * `ready` is told, then `ended`. 0 or a negative errno with the reason: then nothing is told. */
int mfs_children_start(struct mfs_children *l, const struct mfs_provider_node *n,
                       const char *const *argv, struct mfs_err *err);

/* Takes up what an earlier cm started, and describes it. False: there is none that lives. */
bool mfs_children_adopt(struct mfs_children *l, const struct mfs_provider_node *n,
                        char what[MFS_PROVIDER_WHAT_MAX]);

int mfs_children_signal(struct mfs_children *l, uint32_t node, int signo); /* 0 or -ESRCH, … */

/* Kills what still runs for the node, with all that it has started itself, and tells no more. */
void mfs_children_drop(struct mfs_children *l, uint32_t node);

/* How a process ended, by waitpid's status; -1: not known. Pure. */
void mfs_children_how(int status, char *out, size_t n);

#endif
