/* The attributes that a thread's last look-up brought, for the GETATTR that follows it in the same
 * system call.
 *
 * Attributes have no time to live, so the kernel asks for them right after the LOOKUP or CREATE
 * that brought them: to check the permission to go on, or for stat(2). When a thread's very next
 * request, within a millisecond, is GETATTR of what it has just looked up, it gets the same answer
 * again. That is the same system call, unless a program opens a path with O_PATH and calls fstat(2)
 * within that time. For a directory the kernel may ask twice; the second request has to come so
 * soon that no other mount can have changed anything in between.
 *
 * A fixed table with a slot per hash of the thread id. Any thread may call; nothing blocks. */
#ifndef MFS_FUSE_KERNEL_LOOKUP_ATTRS_H
#define MFS_FUSE_KERNEL_LOOKUP_ATTRS_H

#include <stdbool.h>
#include <sys/types.h>

#include "meta/attr.h"

struct mfs_lookup_attrs;

struct mfs_lookup_attrs *mfs_lookup_attrs_create(void); /* NULL: ENOMEM */
void mfs_lookup_attrs_destroy(struct mfs_lookup_attrs *l);

/* The thread's look-up brought these. Thread 0 is ignored, see the body. */
void mfs_lookup_attrs_remember(struct mfs_lookup_attrs *l, pid_t thread,
                               const struct mfs_attr *attr);

/* The thread asks for the attributes of `ino`; true when its last look-up brought them. */
bool mfs_lookup_attrs_recall(struct mfs_lookup_attrs *l, pid_t thread, uint64_t ino,
                             struct mfs_attr *attr);

void mfs_lookup_attrs_forget(struct mfs_lookup_attrs *l,
                             pid_t thread); /* its next request is another one */

#endif
