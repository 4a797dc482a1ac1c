/* cm keeps the history: each second it adds what the deployment is like, each minute and at its end
 * it writes all into a file of the state directory, from which another cm there goes on. What it
 * adds is what it knows anyway; operations and their times only while mounts tell of themselves
 * (nodes/mounts.h). The loop's thread. */
#ifndef MFS_CM_HISTORY_KEEP_H
#define MFS_CM_HISTORY_KEEP_H

#include "cm/history/history.h"
#include "cm/nodes/control.h"

int mfs_history_begin(struct mfs_cm *cm); /* 0 or -ENOMEM */
/* `keep`: the file is written once more. */
void mfs_history_end(struct mfs_cm *cm, bool keep);

const struct mfs_history *mfs_history_of(const struct mfs_cm *cm);

/* Handler of MFS_MSG_HISTORY: writes the file. */
void mfs_history_on_ask(struct mfs_conn *c, uint64_t id, const void *body, void *arg);

#endif
