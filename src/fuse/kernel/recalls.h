/* Files whose attributes the kernel may use without asking, until they are recalled.
 *
 * An answer shows them for MFS_META_SHOWN from when the kernel takes it. Another mount's change
 * recalls them: the kernel is told to forget the inode's attributes, for which it takes no lock. It
 * compares the order in which an answer was asked for and they were recalled (fs/fuse/inode.c:
 * attr_version), but can't for an inode that it does not know yet: until the answer to the LOOKUP
 * or CREATE that tells it of one is taken, there is nothing to recall. That it has taken an answer
 * is known from the next request of the same thread; without one it is taken for granted after
 * MFS_RECALLS_TAKEN. Threads of another PID namespace all have number 0, which proves nothing.
 *
 * Fixed tables. Any thread may call; nothing blocks. */
#ifndef MFS_FUSE_KERNEL_RECALLS_H
#define MFS_FUSE_KERNEL_RECALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"

#define MFS_RECALLS_TAKEN MFS_SEC

struct mfs_recalls;

struct mfs_recalls *mfs_recalls_create(void); /* NULL: ENOMEM */
void mfs_recalls_destroy(struct mfs_recalls *r);

/* The file's attributes are going to be shown: to be said before it is found out whether they are
 * still true. By the answer to a GETATTR: */
void mfs_recalls_show(struct mfs_recalls *r, uint64_t ino);
/* By one that may tell the kernel of the inode; false: better not. True: mfs_recalls_sent has to
 * follow, when the answer was sent. */
bool mfs_recalls_show_new(struct mfs_recalls *r, pid_t thread, uint64_t ino);
void mfs_recalls_sent(struct mfs_recalls *r, pid_t thread, uint64_t ino);
/* A request of the thread has come. */
void mfs_recalls_taken(struct mfs_recalls *r, pid_t thread);

/* Of what was shown by now: may the kernel have attributes of the file to use? And may an answer
 * that tells it of the inode not be taken yet? */
bool mfs_recalls_any(struct mfs_recalls *r, uint64_t ino);
bool mfs_recalls_untaken(struct mfs_recalls *r, uint64_t ino);

#endif
