/* Giving up locks: before it, what was written under them is made known. */
#ifndef MFS_VFS_LOCKS_UNLOCK_H
#define MFS_VFS_LOCKS_UNLOCK_H

#include "vfs/vnode/file.h"

/* Gives up this lock, or the flock. 0 or -errno. */
int mfs_file_unlock(struct mfs_file *f, const struct mfs_lock *lock, bool flock);

/* close(2) by this owner: its fcntl locks on the file go, through whichever handle it took them. */
int mfs_file_unlock_owner(struct mfs_file *f, uint64_t owner);

/* close(2) by this owner, perhaps the last: marks what mfs_file_unlock_rest may soon give back. */
void mfs_file_closing(struct mfs_file *f, uint64_t owner);

/* The last close: locks that belong to the open file description (F_OFD_SETLK) are left. */
void mfs_file_unlock_rest(struct mfs_file *f);

#endif
