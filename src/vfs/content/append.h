/* O_APPEND.
 *
 * An append is one command at the file's home, and a whole one or none, whatever dies. A program
 * that appends often (a log) has its appends gathered: the second within a second asks, along with
 * its bytes, for a lease of the file's end (struct mfs_end_lease), which no client gets while
 * another has the file open or under a lease. Under it appends are put one behind the other in a
 * buffer, which then is appended as one: so other mounts find whole appends, in their order, also
 * when this client dies.
 *
 *            ordinary append, lease wanted and got
 *     NONE ────────────────────────────────────────> LEASED ──┐ gather; store: full, a flush, a
 *      ^                                               │ ^────┘ read, a write, a moment old
 *      └───────────────────────────────────────────────┘
 *            a close, a cut, another mount wants to open or append, a second of rest, an error,
 *            the session is not sure to live
 *
 * One thread at a time appends at the home for a file of this mount (append.busy), so that appends
 * stay in order; others wait, with no lock held.
 *
 * All functions are thread-safe; all but mfs_append_end_wanted block for round trips. */
#ifndef MFS_VFS_CONTENT_APPEND_H
#define MFS_VFS_CONTENT_APPEND_H

#include "vfs/vnode/file.h"

/* Appends; *at is where the kernel believes the bytes to go, which tells what of its pages it will
 * drop by itself, and becomes where they went. The caller is inside the vnode's latch. len, or
 * -errno, which may be that of gathered bytes. */
ssize_t mfs_append(struct mfs_file *f, const void *buf, size_t len, uint64_t *at, uint32_t drop);

/* What is gathered is stored; the lease stays. An error is kept for writers (mfs_dirty_lost). */
void mfs_append_store(struct mfs_vnode *v);

/* Likewise, and the lease is given back. */
void mfs_append_stop(struct mfs_vnode *v);

/* An mfs_meta_end_wanted_fn. */
void mfs_append_end_wanted(void *vfs, uint64_t ino);

#endif
