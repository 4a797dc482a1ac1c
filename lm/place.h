/* A node's place on its machine: the state directory, which is the machine's own, with the secret
 * and the node's directory in it. Several nodes of a deployment may share one, and cm's may be the
 * same. Block. */
#ifndef MFS_LM_PLACE_H
#define MFS_LM_PLACE_H

#include "args/paths.h"

/* Puts the secret there (0600), for clients on this machine. What an earlier deployment of that
 * name left, nothing of which runs any more, is removed. The node's directory is there and locked.
 * 0, -EBUSY with the reason when something of another deployment runs there, or a negative errno.
 */
int mfs_place_take(const struct mfs_paths *p, uint32_t node, const char *secret,
                   struct mfs_err *err);

/* Removes the node's directory and, with the machine's last node, all that is left; but what is
 * cm's. What can't be removed is logged. */
void mfs_place_leave(const struct mfs_paths *p, uint32_t node);

#endif
