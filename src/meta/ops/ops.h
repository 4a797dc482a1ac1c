/* What operations on names and inodes share. Any thread. */
#ifndef MFS_META_OPS_OPS_H
#define MFS_META_OPS_OPS_H

#include "meta/call.h"
#include "meta/internal.h"

/* --- inodes ----------------------------------------------------------------------------------- */

/* Takes note of a record that an answer brought, asked for at mono time `asked`: fills *attr,
 * remembers directories, merges their pending times. 0 or -EIO. */
int mfs_meta_take(struct mfs_meta *meta, uint64_t ino, struct mfs_bytes record, int64_t asked,
                  struct mfs_attr *attr);

/* The same of a directory whose link count this client has changed, which no answer from before may
 * hide from it. */
void mfs_meta_counted(struct mfs_meta *meta, uint64_t dir, struct mfs_bytes record, int64_t asked);

/* The record itself: -ESTALE. *c holds it. */
int mfs_meta_record(struct mfs_meta *meta, uint64_t ino, struct mfs_call *c,
                    struct mfs_bytes *record);

/* One name less for a file, for the transaction `txn`, which is done once however often it is asked
 * for; deletes what is left of the file when that was the last. `holders` of a lease of the name,
 * which are told when that is done. Within mfs_unregistered_removing. */
int mfs_meta_unref(struct mfs_meta *meta, uint64_t ino, const struct mfs_time_arg *time,
                   const char *txn, struct mfs_bytes holders);

/* What command mfs_unref answered: what unref answered, and which other sessions had a lease of the
 * file. */
struct mfs_bytes mfs_meta_unref_answer(struct mfs_bytes answer, struct mfs_bytes *holders);

/* Does what that asks for, which was asked for at mono time `asked`: on return no client shows the
 * file as it was (mfs_leases_file_changed), and it is freed if no client has it open. */
void mfs_meta_unrefed(struct mfs_meta *meta, uint64_t ino, int64_t asked, struct mfs_bytes status,
                      const struct mfs_bytes *holders, size_t n);

/* The same for a client that died after it had taken the last name, and before all leases were
 * revoked: of a file with no registered opens. */
void mfs_meta_revoke_orphan(struct mfs_meta *meta, uint64_t ino);

/* What unref, close and so on answered: deletes what is left of the file's stripes. If the file
 * stays only because its partition does not know yet that this client has closed it, tells it. */
void mfs_meta_freed(struct mfs_meta *meta, uint64_t ino, struct mfs_bytes status);

/* --- directories ------------------------------------------------------------------------------ */

/* A directory's inode may be this old to tell where its entries are. */
#define MFS_DIR_AGE (10 * MFS_SEC)

/* Has the directory's inode say that `part` may hold entries of it. -ENOENT, -ENOTDIR */
int mfs_meta_spread(struct mfs_meta *meta, uint64_t dir, uint32_t part);

/* --- locks ------------------------------------------------------------------------------------ */

enum { MFS_LOCK_READ = 1, MFS_LOCK_WRITE = 2 }; /* in partition/locks/lock_index.h */

/* One attempt to give a lock back, of type F_UNLCK. */
int mfs_lock_give_back(struct mfs_meta *meta, uint64_t ino, bool flock,
                       const struct mfs_lock *lock);

/* What a command takes for the flags of setxattr(2). */
const char *mfs_xattr_how(int flags);

/* MFS_ATTR_* of a new inode that its extended attributes ask for. */
uint32_t mfs_new_flags(const struct mfs_new *new);
#define MFS_NEW_XATTRS 16 /* so many it has at most */

/* A regular file all of which is to be in new->home, not in the partition of its name; open for
 * this session on return. *created: false, it was there. Where new->home has no memory for it, it
 * is made as one without a place. */
int mfs_create_elsewhere(struct mfs_meta *meta, uint64_t parent, const char *name,
                         const struct mfs_new *new, bool exclusive, struct mfs_attr *attr,
                         bool *created);

/* An owner that the inode has to have, if it matters. */
void mfs_owned_arg(struct mfs_call *c, bool matters, uint32_t id);

#endif
