/* Has the kernel forget attributes of files that it was shown (fuse/kernel/recalls.h). A thread of
 * its own does it for other mounts' changes: an inode that the kernel is just letting go is waited
 * for, and that may wait for pages that are being written to this mount. */
#ifndef MFS_FUSE_MOUNT_RECALLER_H
#define MFS_FUSE_MOUNT_RECALLER_H

#include <stdbool.h>
#include <stdint.h>

struct mfs_fuse;
struct mfs_recaller;

int mfs_recaller_create(struct mfs_recaller **r, struct mfs_fuse *m); /* starts the thread */

/* From now on `done` is called at once, without asking the kernel. Returns when nothing is queued.
 */
void mfs_recaller_stop(struct mfs_recaller *r);
void mfs_recaller_destroy(struct mfs_recaller *r); /* takes NULL */

/* A mfs_meta_recalled_fn; arg is the struct mfs_recaller. Without `done` this mount has made the
 * change itself, and the calling thread serves a request: the kernel is told at once, so that it
 * does not take an older answer for newer. */
void mfs_recaller_recall(void *arg, uint64_t ino, void (*done)(void *done_arg), void *done_arg);

/* Before a LOOKUP or a listing shows the file: the kernel forgets an ACL of it that it has. True:
 * it had to, and so takes attributes for older that were asked for before. */
bool mfs_recaller_forget_acl(struct mfs_recaller *r, uint64_t ino);

#endif
