/* Locks that wait for their holder without a thread each: one thread tries for all of them, soon at
 * first, then less often (1 ms doubling to 20 ms), and at once when this mount unlocks the file.
 * A partition is asked for one of them at a time; while it has not answered, another thread asks
 * the others. So one that is being moved, or hangs, holds up only the waiters for its files. Who
 * waits for an fcntl lock in a ring of owners that wait for each other gets -EDEADLK. */
#ifndef MFS_VFS_LOCKS_LOCK_WAIT_H
#define MFS_VFS_LOCKS_LOCK_WAIT_H

#include <stdint.h>

struct mfs_lock_wait;
struct mfs_lock_waiter;

int mfs_lock_wait_create(struct mfs_lock_wait **lw);  /* starts a thread */
void mfs_lock_wait_stop(struct mfs_lock_wait *lw);    /* cancels all waiters, takes no new ones */
void mfs_lock_wait_destroy(struct mfs_lock_wait *lw); /* stops first. Takes NULL */

/* Something of this inode was unlocked here: try its waiters now. */
void mfs_lock_wait_kick(struct mfs_lock_wait *lw, uint64_t ino);

#endif
