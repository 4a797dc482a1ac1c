/* Path walks that met a file which another mount was replacing.
 *
 * open(2) is two requests to us, LOOKUP and OPEN. When the file is replaced and gone in between,
 * OPEN says ESTALE and the kernel walks the path again, but only once, and may meet the next
 * replacement. So when a thread has been told ESTALE, its next look-ups open what they find: then
 * it stays until that thread has been served, however slow the links are. Costs nothing while
 * no call fails with ESTALE. Any thread. */
#ifndef MFS_FUSE_MOUNT_RETRIES_H
#define MFS_FUSE_MOUNT_RETRIES_H

#include <stdbool.h>
#include <sys/types.h>

#include "vfs/vfs.h"

struct mfs_retries;

/* Starts a thread. NULL: ENOMEM, or there are too many threads. */
struct mfs_retries *mfs_retries_create(struct mfs_vfs *vfs);
void mfs_retries_destroy(struct mfs_retries *r); /* before the vfs. Takes NULL */

void mfs_retries_stale(struct mfs_retries *r, pid_t thread); /* it was told ESTALE */

/* As mfs_vfs_lookup; if the thread is trying again, a regular file stays until a moment after the
 * answer, or for as long as its next request takes that begins in time. */
int mfs_retries_lookup(struct mfs_retries *r, pid_t thread, uint64_t parent, const char *name,
                       struct mfs_attr *attr);

/* As mfs_vfs_open. */
int mfs_retries_open(struct mfs_retries *r, pid_t thread, uint64_t ino, int flags,
                     struct mfs_file **file, bool *keep_cache);

/* Lets go of what was held for longer than a moment; a thread does so about once a second while
 * anything is. */
void mfs_retries_sweep(struct mfs_retries *r);

#endif
