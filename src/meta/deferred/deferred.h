/* What partitions learn later, without any call waiting for it: link counts of inodes elsewhere,
 * what renames leave, times of directories, closes; and housekeeping, which does what a dead client
 * can't. Any thread.
 */
#ifndef MFS_META_DEFERRED_DEFERRED_H
#define MFS_META_DEFERRED_DEFERRED_H

#include "meta/call.h"
#include "meta/internal.h"
#include "partition/protocol.h"

/* --- link counts that follow names elsewhere, see link_counts.c --------------------------------
 */

struct mfs_link_counts *mfs_link_counts_create(void);
void mfs_link_counts_destroy(struct mfs_link_counts *d);
/* Transaction `txn`, begun at mono time `begun` and noted at `noted`, is done, which `decider`
 * remembers: both may forget it. Does not wait. Any thread. */
void mfs_link_counts_done(struct mfs_meta *meta, const char *txn, int64_t begun, uint32_t noted,
                          uint32_t decider);
/* Has all partitions forget all of them, and waits for a thread that is about to. */
void mfs_link_counts_flush(struct mfs_meta *meta);
/* Ends one that was left: the note that `part` has had for `age` seconds, but for its beginning. */
void mfs_link_counts_finish(struct mfs_meta *meta, uint32_t part, const char *txn,
                            struct mfs_bytes note, int64_t age);
/* Is it such a note? */
bool mfs_link_counts_is_note(struct mfs_bytes note);

/* --- files whose time is over, see expire.c ----------------------------------------------------
 */

/* Those, and those that have been read as often as they are to be, of the directories that `part`
 * lists in #ttl (ino, last look in seconds, …); `now`, by its clock. Blocks for as long as that
 * takes, a second or little more. */
void mfs_expire_look(struct mfs_meta *meta, uint32_t part, const struct mfs_reply *list,
                     int64_t now);

/* --- files that have been read, see reads.c ----------------------------------------------------
 */

struct mfs_reads *mfs_reads_create(struct mfs_meta *meta);
void mfs_reads_destroy(struct mfs_reads *r); /* NULL is fine */
/* Tells what there is, and removes what follows; then does nothing more. No other thread may use it
 * any more. */
void mfs_reads_stop(struct mfs_reads *r);
/* One item of the command mfs_reads (partition/files/reads.c). */
void mfs_reads_item(char item[MFS_READS_ITEM], uint64_t ino, uint64_t version, uint32_t count);

/* --- source entries of renames across partitions, see settles.c --------------------------------
 */

struct mfs_settles *mfs_settles_create(void);
void mfs_settles_destroy(struct mfs_settles *s);
/* The rename `txn`, which `decider` has committed, is over but for its source entry, at `part`,
 * which is to go. Does not block. */
void mfs_settles_add(struct mfs_meta *meta, uint64_t dir, const char *name, uint32_t part,
                     const char *txn, uint32_t decider);
/* Is it one of them? */
bool mfs_settles_has(struct mfs_meta *meta, const char *txn);
/* On return all of them are done with, or housekeeping's. */
void mfs_settles_flush(struct mfs_meta *meta);
/* In one round trip, those of the directory. */
void mfs_settles_now(struct mfs_meta *meta, uint64_t dir);
/* The one of this name, or NULL, to go along with what comes under the name: its call goes first,
 * which points into *p and *dir, and then mfs_settles_called, with that call, run or not, frees it
 * (NULL is fine). */
struct mfs_settle *mfs_settles_take(struct mfs_meta *meta, uint64_t dir, const char *name);
void mfs_settles_call(struct mfs_calls *calls, const struct mfs_settle *p, struct mfs_ino_arg *dir);
void mfs_settles_called(struct mfs_meta *meta, struct mfs_settle *p, const struct mfs_call *c);

/* --- times of parents ------------------------------------------------------------------------- */

struct mfs_parents *mfs_parents_create(void);
void mfs_parents_destroy(struct mfs_parents *p);
/* Names came or went in the directory now. */
void mfs_parents_touch(struct mfs_meta *meta, uint64_t dir, struct timespec now);
/* For calls by which directories came or went in it: which of the settings of its times this client
 * has seen (decisions/0008), as mfs_dircache_times_set. */
int32_t mfs_parents_seen(struct mfs_meta *meta, uint64_t dir);
/* Adds to attributes what has not gone out yet. */
void mfs_parents_merge(struct mfs_meta *meta, struct mfs_attr *attr);
void mfs_parents_flush(void *meta);

/* --- closes ----------------------------------------------------------------------------------- */

/* Tells the partitions of all closes that no call waits for. */
void mfs_closes_flush(void *meta);
/* And of those of this inode at once. */
void mfs_closes_flush_of(struct mfs_meta *meta, uint64_t ino);

/* --- housekeeping ----------------------------------------------------------------------------- */

/* Looks at this client's share of the partitions (chores.c); one thread at a time. */
void mfs_chores_tick(void *meta);
/* At all of them. */
void mfs_chores_all(struct mfs_meta *meta);
/* What a partition has of this client may be more than the client knows: for some time it looks at
 * all of them itself. Any thread, does not block. */
void mfs_chores_doubt(struct mfs_meta *meta);
/* The first share. */
void mfs_chores_begin(struct mfs_meta *meta);

#endif
