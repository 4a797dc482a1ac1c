/* A verb as one more client of a running deployment. */
#ifndef MFS_CLI_CLIENT_H
#define MFS_CLI_CLIENT_H

#include "args/program.h"
#include "fuse/mount/control.h"
#include "store/store.h"

struct mfs_verb_client {
    char address[PATH_MAX];
    struct mfs_control_config config;
    struct mfs_control *control;
    struct mfs_store *store;
};

/* Joins the call's deployment under the verb's name; blocks until there is a partition table, 10 s
 * at most. *c is zeroed before, stays where it is, and is to be left in any case. 0 or a negative
 * errno with the reason. */
int mfs_verb_join(struct mfs_verb_client *c, const struct mfs_verb_call *call, struct mfs_err *err);
void mfs_verb_leave(struct mfs_verb_client *c);

#endif
