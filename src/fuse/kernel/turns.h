/* Requests that may have to wait for other mounts: only so many are served at once.
 *
 * A file's change is over when the other mounts have dropped its pages. Their kernels wait for
 * pages that are locked by reads and writes, and those wait for a worker. Were all workers of two
 * mounts in such requests, each would wait for the other for ever. So some of the workers serve
 * nothing of the kind: what they get of it is kept, until one of those that are being served is
 * over.
 *
 * All functions are thread-safe and do not block. */
#ifndef MFS_FUSE_KERNEL_TURNS_H
#define MFS_FUSE_KERNEL_TURNS_H

#include <stdbool.h>
#include <stddef.h>

struct mfs_turns;

struct mfs_turns *mfs_turns_create(unsigned most); /* at once; NULL: ENOMEM */
void mfs_turns_destroy(struct mfs_turns *t);       /* takes NULL; what is kept is not answered */

/* Is the request to be served now? Else it has been copied, for mfs_turns_next. */
bool mfs_turns_take(struct mfs_turns *t, const char *request, size_t len);

/* One that was to be served now is over. The length of the one whose turn it is instead, which is
 * put to `request`; 0: none. */
size_t mfs_turns_next(struct mfs_turns *t, char *request);

#endif
