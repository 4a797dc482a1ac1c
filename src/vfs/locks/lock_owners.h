/* The owners that have, or had, fcntl locks of an inode, and through which of its open files. The
 * kernel identifies an owner by a number: a process, for all its open files, or one open file
 * (F_OFD_SETLK).
 *
 * An owner at a file is added before it takes its first lock there; it is *releasing* from the
 * begin of a close until its locks are given back; then it is dropped. Everything is guarded by the
 * vnode's lock, which callers hold. */
#ifndef MFS_VFS_LOCKS_LOCK_OWNERS_H
#define MFS_VFS_LOCKS_LOCK_OWNERS_H

#include "vfs/vnode/file.h"

/* An owner at one open file. */
struct mfs_owner {
    uint64_t id;
    struct mfs_file *file;
    bool releasing;                      /* its locks are being given back */
    struct mfs_owner *prev, *next;       /* of the file */
    struct mfs_owner *id_prev, *id_next; /* the same owner at other files */
};

struct mfs_owner *mfs_owner_find(const struct mfs_file *f, uint64_t id); /* NULL: not there */
int mfs_owner_add(struct mfs_file *f, uint64_t id);       /* if it is not there; 0 or -ENOMEM */
void mfs_owner_drop(struct mfs_owner *o);                 /* takes NULL */
bool mfs_owner_drop_id(struct mfs_vnode *v, uint64_t id); /* at all files; was it at any? */
void mfs_owner_drop_file(struct mfs_file *f);             /* all of the file */

bool mfs_owner_is_shared(const struct mfs_owner *o); /* is it at other files, too? */
void mfs_owner_begin_release(struct mfs_owner *o);   /* until it is dropped */
bool mfs_owner_is_releasing(const struct mfs_vnode *v, uint64_t id); /* at any file */

#endif
