/* Changes of which it is unknown whether they were done. A client that changes something notifies
 * the other clients that have it open or under a lease; when the answer to the change was lost, or
 * the client died before it had notified them, they go on to show what was before. So a client that
 * learns of such a change notifies them as if it had made the change. All functions are thread-safe
 * and block for round trips. */
#ifndef MFS_META_DEFERRED_UNKNOWN_OUTCOMES_H
#define MFS_META_DEFERRED_UNKNOWN_OUTCOMES_H

#include "meta/ops/rename.h"

/* The inode, of that type, has lost a name in partition `part`, or has been given another: no
 * client shows it as it was on return. 0, or -errno: its partition can't be asked. Waits for the
 * holders as mfs_meta_settle does. */
int mfs_outcomes_notify(struct mfs_meta *meta, uint64_t ino, mode_t type, uint32_t part);

/* A rename whose answer was lost: it is ended, one way or the other, if it is not yet, what is
 * known here of its names is forgotten, and the holders of what the names mean, or meant as far as
 * this client knew, are notified. Gives up at the first partition that does not answer; then those
 * of files are notified later (mfs_outcomes_retry), housekeeping does what it can, and leases run
 * out. The keeper of the shard to which a name may have come is notified, too. */
void mfs_outcomes_rename(const struct mfs_rename *r);

/* The same for single changes, whose call ended with `rc`: each does nothing unless the outcome is
 * unknown. What this client knew is forgotten. What a partition that does not answer now, either,
 * is to do or to say is asked for when it does (mfs_outcomes_retry). */

/* Content, size and times of a regular file. Does not wait for the notified clients:
 * mfs_meta_settle does. */
void mfs_outcomes_content(struct mfs_meta *meta, uint64_t ino, int rc);

/* The place behind a file's end (O_APPEND) may have been taken, or not given back, by append
 * `number` of that session: it is given back, or all others would wait as long as the session
 * lives. */
void mfs_outcomes_place(struct mfs_meta *meta, uint64_t ino, uint64_t session, uint64_t number,
                        int rc);

/* All locks of one kind that an owner of that session has may not have been given back: they are,
 * unless the owner takes new ones before; mfs_outcomes_unlock_cancel says so, and waits while it is
 * done. */
void mfs_outcomes_unlock(struct mfs_meta *meta, uint64_t ino, bool flock, uint64_t session,
                         uint64_t owner, int rc);
void mfs_outcomes_unlock_cancel(struct mfs_meta *meta, uint64_t ino, bool flock, uint64_t owner);

/* Mode, owner, times, links, of an inode of any type. Waits for them. */
void mfs_outcomes_attributes(struct mfs_meta *meta, uint64_t ino, int rc);

/* A name may have been added in that shard; waits for its keeper. */
void mfs_outcomes_added(struct mfs_meta *meta, uint64_t dir, uint32_t part, int rc);

/* A file's name may be gone. Waits for the holders of the inode that it meant as far as this client
 * knew; housekeeping notifies the others when the file was without a name then. */
void mfs_outcomes_removed(struct mfs_meta *meta, uint64_t dir, const char *name, int rc);

struct mfs_outcomes *mfs_outcomes_create(void); /* NULL: ENOMEM */
void mfs_outcomes_destroy(struct mfs_outcomes *d);
/* Does what is left; the rest of it later, when a partition does not answer. */
void mfs_outcomes_retry(struct mfs_meta *meta);

#endif
