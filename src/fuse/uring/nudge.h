/* A request of our own through a queue, so that the kernel looks whether others wait there. */
#ifndef MFS_FUSE_URING_NUDGE_H
#define MFS_FUSE_URING_NUDGE_H

#include <stdbool.h>

struct mfs_nudge;

struct mfs_nudge *mfs_nudge_create(const char *path); /* the mount's; NULL: ENOMEM */
void mfs_nudge_destroy(struct mfs_nudge *n);          /* takes NULL; waits for nothing */

/* statfs(2) of the mount by a thread of its own on that processor, unless one is under way that was
 * begun just now: false then. At once. One thread calls it. */
bool mfs_nudge(struct mfs_nudge *n, unsigned processor);

/* Was one not allowed on its processor? Once. */
bool mfs_nudge_refused(struct mfs_nudge *n, unsigned *processor);

#endif
