/* Tells the kernel to drop pages or names, and of a file's new size. A thread of its own does it,
 * and never one that serves requests: the kernel waits for pages and directories that are locked by
 * calls under way, which the workers have to answer. */
#ifndef MFS_FUSE_MOUNT_NOTIFY_H
#define MFS_FUSE_MOUNT_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/ranges.h"

struct mfs_fuse;
struct mfs_notify;

int mfs_notify_create(struct mfs_notify **n, struct mfs_fuse *m); /* starts the thread */

/* From now on requests are answered without asking the kernel. Returns when nothing is queued. */
void mfs_notify_stop(struct mfs_notify *n);
void mfs_notify_destroy(struct mfs_notify *n); /* takes NULL */

/* An mfs_vfs_invalidate_fn; arg is the struct mfs_notify. */
void mfs_notify_invalidate(void *arg, uint64_t ino, void (*done)(void *done_arg), void *done_arg);

/* Drops whole pages of a file that this mount has written; then calls `done` (may be NULL), in any
 * case and from another thread as a rule. */
void mfs_notify_drop(struct mfs_notify *n, uint64_t nodeid, const struct mfs_range *pages,
                     void (*done)(void *done_arg), void *done_arg);

/* Waits until all of the file's pages that are to be dropped are gone, `most` ns at most. */
void mfs_notify_settle(struct mfs_notify *n, uint64_t nodeid, int64_t most);

/* A mfs_meta_revoked_fn: the kernel's names and attributes of a directory. */
bool mfs_notify_revoke(void *arg, uint64_t ino, bool name, bool own, void (*done)(void *done_arg),
                       void *done_arg);

/* A mfs_meta_distrust_fn: from the return on the kernel uses no name that it had before without
 * asking. It takes none of its locks for that. Not where something is mounted on a directory of
 * this mount, and Linux before 6.16 can't: then only what is to be dropped goes, when its locks are
 * free. */
void mfs_notify_distrust(void *arg);

/* What the calling thread's request does to names, its kernel knows: they are not taken from it by
 * an `own` revocation, which waits until the other names of what moves or goes are, and not for
 * long: see mfs_notify_distrust. Nodes; the names must stay. */
void mfs_notify_serve(uint64_t parent, const char *name, uint64_t new_parent, const char *new_name);

/* The kernel forgets the inode's attributes, and its pages from `off` on, if that is not negative:
 * of `len` bytes, or with 0 of all. -ENOENT: it does not know the inode. Waits for pages that are
 * locked, and for an inode that the kernel is just letting go. */
int mfs_notify_forget(struct mfs_fuse *m, uint64_t nodeid, off_t off, off_t len);

/* The kernel forgets the directory's attributes, wherever it may use them without asking, also
 * those in answers that it has not looked at yet. At once. */
void mfs_notify_attributes(struct mfs_notify *n, uint64_t ino);

#endif
