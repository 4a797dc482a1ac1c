/* Files whose attributes the kernel may use without asking, until they are recalled.
 *
 * An answer shows them for MFS_META_SHOWN from when the kernel takes it. Another mount's change
 * recalls them: the kernel is told to forget the inode's attributes, for which it takes no lock. It
 * compares the order in which an answer was asked for and they were recalled (fs/fuse/inode.c:
 * attr_version); but not in the answer to a CREATE, nor for an inode that it does not know yet. So
 * while an answer that may tell it of the inode is not taken, it has to be told again. That it has
 * taken an answer is known from the next request of the same thread; without one it is taken for
 * granted after MFS_RECALLS_TAKEN. Threads of another PID namespace all have number 0, which proves
 * nothing.
 *
 * An ACL that the kernel has is not forgotten when a LOOKUP brings attributes, only when they are
 * asked for or recalled: so it is to be forgotten before they are shown by one.
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

/* The file's attributes are going to be shown by the answer to a GETATTR: to be said before it is
 * found out whether they are still true. Then: it was sent; or it shows nothing after all. */
void mfs_recalls_show(struct mfs_recalls *r, uint64_t ino);
void mfs_recalls_shown(struct mfs_recalls *r, uint64_t ino);
void mfs_recalls_not_shown(struct mfs_recalls *r, uint64_t ino);

/* The same of an answer to the thread that may tell the kernel of the inode. False: better not. */
bool mfs_recalls_show_new(struct mfs_recalls *r, pid_t thread, uint64_t ino, bool create);
void mfs_recalls_shown_new(struct mfs_recalls *r, pid_t thread, uint64_t ino);
void mfs_recalls_not_shown_new(struct mfs_recalls *r, pid_t thread, uint64_t ino);
/* A request of the thread has come, for which it waits. */
void mfs_recalls_taken(struct mfs_recalls *r, pid_t thread);

/* Of what was shown by now: may the kernel have attributes of the file to use? */
bool mfs_recalls_any(struct mfs_recalls *r, uint64_t ino);

/* An answer that may tell the kernel of the inode, of those shown before `time`, mono: */
enum mfs_recalls_untaken {
    MFS_RECALLS_NONE,        /* all are taken */
    MFS_RECALLS_OF_UNKNOWN,  /* one may not be; it counts if the kernel does not know the inode */
    MFS_RECALLS_OF_ANY_CASE, /* … it counts */
};
enum mfs_recalls_untaken mfs_recalls_untaken(struct mfs_recalls *r, uint64_t ino, int64_t time);

/* The kernel asks for the inode's ACL: to be said before that is found out. True: it may have one
 * since the last call of this, which is to be made before it is told to forget it. */
void mfs_recalls_acl(struct mfs_recalls *r, uint64_t ino);
bool mfs_recalls_take_acl(struct mfs_recalls *r, uint64_t ino);

#endif
