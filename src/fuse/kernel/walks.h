/* What a thread's last look-up brought, for the questions that follow it in the same system call.
 *
 * Attributes have no time to live, so the kernel asks for them right after the LOOKUP or CREATE
 * that brought them: to check the permission to walk on, for stat(2). If a thread's very next
 * request, within a millisecond, is GETATTR of what it has just looked up, it gets the same answer
 * again. That is the same system call, but for one who opens a path with O_PATH and calls fstat(2)
 * within that time. For a directory the kernel may ask twice, which has to come at once: sooner
 * than another mount could have changed anything in between.
 *
 * A fixed table, a slot per hash of the thread id. Any thread; does not block. */
#ifndef MFS_FUSE_KERNEL_WALKS_H
#define MFS_FUSE_KERNEL_WALKS_H

#include <stdbool.h>
#include <sys/types.h>

#include "meta/attr.h"

struct mfs_walks;

struct mfs_walks *mfs_walks_create(void); /* NULL: ENOMEM */
void mfs_walks_destroy(struct mfs_walks *w);

void mfs_walks_found(struct mfs_walks *w, pid_t thread, const struct mfs_attr *attr);

/* The thread asks for the attributes of `ino`; true when it found that just now. */
bool mfs_walks_recall(struct mfs_walks *w, pid_t thread, uint64_t ino, struct mfs_attr *attr);

void mfs_walks_end(struct mfs_walks *w, pid_t thread); /* it does something else */

#endif
