/* Changes whose fate, or whose maker, is unknown. Who changes something tells those who have it
 * open or under a lease; when the answer to the change was lost, or its maker died before, others
 * go on to show what was before. So who learns of such a change tells everybody as if he had made
 * it. All functions are thread-safe and block for round trips. */
#ifndef MFS_META_DEFERRED_DOUBT_H
#define MFS_META_DEFERRED_DOUBT_H

#include "meta/ops/rename.h"

/* The inode, of that type, has lost a name in partition `part`, or has been given another: nobody
 * shows it as it was on return. 0, or -errno: its partition can't be asked. Waits for the holders
 * as mfs_meta_settle does. */
int mfs_doubt_tell(struct mfs_meta *meta, uint64_t ino, mode_t type, uint32_t part);

/* A rename whose answer was lost: it is ended, one way or the other, if it is not yet, what is
 * known here of its names is forgotten, and the holders of what the names mean, or meant as far as
 * this client knew, are told. Gives up at the first partition that does not answer; then those of
 * files are told later (mfs_doubts_retry), housekeeping does what it can, and leases run out. The
 * keeper of the shard to which a name may have come is told, too. */
void mfs_doubt_rename(const struct mfs_rename *r);

/* The same for single changes, whose call ended with `rc`: each does nothing unless that is
 * doubtful. What this client knew is forgotten. What a partition that does not answer now, either,
 * is to do or to say is asked for when it does (mfs_doubts_retry). */

/* Content, size and times of a regular file. Does not wait for those who are told: who calls
 * mfs_meta_settle does. */
void mfs_doubt_content(struct mfs_meta *meta, uint64_t ino, int rc);

/* The place behind a file's end (O_APPEND) may have been taken, or not given back, by append
 * `number` of that session: it is given back, or all others would wait as long as the session
 * lives. */
void mfs_doubt_place(struct mfs_meta *meta, uint64_t ino, uint64_t session, uint64_t number,
                     int rc);

/* All locks of one kind that an owner of that session has may not have been given back: they are,
 * unless he takes new ones before; which says mfs_doubt_unlocked_not, and waits while it is done.
 */
void mfs_doubt_unlocked(struct mfs_meta *meta, uint64_t ino, bool flock, uint64_t session,
                        uint64_t owner, int rc);
void mfs_doubt_unlocked_not(struct mfs_meta *meta, uint64_t ino, bool flock, uint64_t owner);

/* Mode, owner, times, links, of an inode of any type. Waits for them. */
void mfs_doubt_attributes(struct mfs_meta *meta, uint64_t ino, int rc);

/* A name may have been added in that shard; waits for its keeper. */
void mfs_doubt_added(struct mfs_meta *meta, uint64_t dir, uint32_t part, int rc);

/* A file's name may be gone. Waits for the holders of what it meant as far as this client knew; who
 * had it from another client only is told by housekeeping when the file was without a name then. */
void mfs_doubt_removed(struct mfs_meta *meta, uint64_t dir, const char *name, int rc);

struct mfs_doubts *mfs_doubts_create(void); /* NULL: ENOMEM */
void mfs_doubts_destroy(struct mfs_doubts *d);
/* Does what is left; the rest of it later, when a partition does not answer. */
void mfs_doubts_retry(struct mfs_meta *meta);

#endif
