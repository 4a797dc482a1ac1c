/* Tells the kernel to drop pages and of a file's new size. One thread does it, and never one that
 * serves requests: the kernel waits for pages that are locked by reads and writes under way, which
 * the workers have to answer. */
#ifndef MFS_FUSE_NOTIFY_H
#define MFS_FUSE_NOTIFY_H

#include <stdint.h>

struct mfs_fuse;
struct mfs_notify;

int mfs_notify_create(struct mfs_notify **n, struct mfs_fuse *m); /* starts the thread */

/* From now on requests are answered without asking the kernel. Returns when nothing is queued. */
void mfs_notify_stop(struct mfs_notify *n);
void mfs_notify_destroy(struct mfs_notify *n); /* takes NULL */

/* An mfs_vfs_invalidate_fn; arg is the struct mfs_notify. */
void mfs_notify_invalidate(void *arg, uint64_t ino, void (*done)(void *done_arg), void *done_arg);

#endif
