/* What --on-end asks for: a checkpoint, before nodes that were told to end take along what no other
 * has room for. Written as `cm checkpoint` writes one, which is run for it.
 *
 * Loop thread; nothing blocks. */
#ifndef MFS_CM_CHANGE_ON_END_H
#define MFS_CM_CHANGE_ON_END_H

#include "cm/nodes/control.h"

struct mfs_on_end;

struct mfs_on_end *mfs_on_end_create(struct mfs_cm *cm); /* NULL: ENOMEM */
void mfs_on_end_destroy(struct mfs_on_end *o);           /* takes NULL */

const char *
mfs_on_end_dir(const struct mfs_cm *cm); /* of the checkpoints; NULL: none is asked for */

/* Others were told to end since: another one is due, at the next need. */
void mfs_on_end_again(struct mfs_on_end *o);

/* True while the checkpoint is being written, which begins with the first call; it is given up
 * after `limit` ns. False: none is asked for, or it has ended. */
bool mfs_on_end_saves(struct mfs_on_end *o, int64_t limit);

bool mfs_on_end_saved(const struct mfs_on_end *o); /* the last one is whole */

#endif
