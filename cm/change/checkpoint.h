/* A checkpoint of the running deployment: every partition as it was at one moment, in files. The
 * steps, each asked of every node that has partitions (drop: of every node that is there), and
 * begun when all are done with the one before:
 *
 *     halt ──► cut ──► write ──► (over)
 *      └────────┴───────┴──► drop ──► (again, or over)
 *
 * halt: they execute nothing that changes anything, which ends by itself. cut: each forks, and goes
 * on. As none goes on before all stand still, what the children write is as of one moment. write:
 * the images are on disk. drop: what was begun is given up; if something was changed in between the
 * cut is tried anew. The files become a checkpoint when the command line commits them (manifest.h):
 * nothing of a checkpoint stands in cm.json before that, and a cm that dies leaves the former one.
 *
 * Loop thread; nothing blocks. */
#ifndef MFS_CM_CHANGE_CHECKPOINT_H
#define MFS_CM_CHANGE_CHECKPOINT_H

#include "cm/nodes/control.h"

bool mfs_checkpoint_busy(const struct mfs_cm *cm);

/* How far it is; all 0 and "" when there is none. */
void mfs_checkpoint_progress(const struct mfs_cm *cm, struct mfs_progress *p);

/* Handlers of CHECKPOINT and CHECKPOINTED. */
void mfs_checkpoint_on_ask(struct mfs_conn *c, uint64_t id, const void *body, void *arg);
void mfs_checkpoint_on_committed(struct mfs_conn *c, uint64_t id, const void *body, void *arg);

/* A connection is gone: if it is the one that asked, nothing would commit the checkpoint. */
void mfs_checkpoint_hung_up(struct mfs_cm *cm, const struct mfs_conn *c);
void mfs_checkpoint_stop(struct mfs_cm *cm); /* the deployment is being stopped */
/* Before the connections are closed. */
void mfs_checkpoint_fini(struct mfs_cm *cm);

#endif
