/* Taking a lock: what was cached before it may be older than what is written under it. */
#ifndef MFS_VFS_LOCKS_TAKE_H
#define MFS_VFS_LOCKS_TAKE_H

#include "vfs/vnode/file.h"

/* Takes a lock if none is in conflict, as mfs_vfs_setlk without its rule for conversions. `wait`
 * (may be NULL): of a waiter for this fcntl lock; ended when the lock is taken, else it learns
 * which lock is in conflict. */
int mfs_file_try_lock(struct mfs_file *f, const struct mfs_lock *lock, bool flock,
                      struct mfs_meta_wait *wait, mfs_vfs_lock_fn *done, void *arg);

/* Whether the open file may have a flock. */
void mfs_file_note_flock(struct mfs_file *f, bool held);
bool mfs_file_may_have_flock(struct mfs_file *f);

#endif
