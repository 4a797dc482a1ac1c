/* Write-behind: written bytes stay in memory of the client until their stripe is full, the window
 * is full, a flush wants them, or they are about a second old; several stripes are on the way at
 * once.
 *
 * One struct mfs_writeback per mount owns the sender threads and the bound on all dirty bytes; one
 * struct mfs_dirty per open inode holds that file's dirty ranges. Only dirty bytes are sent, so two
 * writers of different parts of one stripe never undo each other.
 *
 * What is stored in the stripes is made known (size, times, version) by the commit callback, after
 * the data are stored. When everything dirty is a small part of stripe 0, data and commit go in one
 * step.
 *
 * Errors are kept. The next write, of any process, reports one; and so does the next flush of each
 * open file, which counts for itself what it has reported: no flush returns 0 although data are
 * lost, only because another one, or none, has reported that. What could be stored and not be
 * committed, as the home is full, stays to be committed; all else that an error is about is lost.
 * Some of that may be in the place of what was there, as answers were lost: then there is a commit,
 * if of nothing else, so that no mount goes on to show what it has of the former version. */
#ifndef MFS_DATA_WRITEBACK_WRITEBACK_H
#define MFS_DATA_WRITEBACK_WRITEBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/ranges.h"
#include "store/store.h"

struct mfs_writeback;
struct mfs_dirty;

struct mfs_dirty_part { /* of stripe 0, to be written with the commit */
    uint32_t off, len;
    const void *p;
};

struct mfs_dirty_commit {
    uint64_t end;                   /* end of the furthest byte written since the last commit; when
                                     * it is not a flush that commits, below it nothing is still
                                     * dirty, or what is stored is in very many places; 0: none */
    const struct mfs_range *stored; /* what is in the stripes since, ascending: written bytes, */
    size_t nstored;                 /* parts, and zeros before them in the same block */
    int64_t alloc;                  /* bytes newly stored in stripes */
    struct timespec mtime;          /* of the last write */
    const struct mfs_dirty_part *parts;
    size_t nparts;
    bool drops; /* some of it was written with `drops` */
};

/* Makes it known at the file's home; 0 or -errno. Called by one thread at a time per file, any
 * thread, no lock held. */
typedef int mfs_dirty_commit_fn(void *arg, const struct mfs_dirty_commit *commit);

struct mfs_writeback_opts {
    uint32_t threads;      /* senders; 0: 4 */
    size_t max_bytes;      /* dirty and in flight over all files, bound on memory; 0: 128 MiB */
    size_t max_file_bytes; /* of one file; 0: 32 MiB */
    int64_t max_age;       /* ns; 0: 1 s */
    int64_t full_wait;     /* ns that a full partition (-ENOSPC) is tried again; 0: 2 s. Longer
                            * when mfs_store_full_wait says so */
    struct mfs_metrics *metrics; /* to register figures with; NULL: none */
};

int mfs_writeback_create(struct mfs_writeback **wb, struct mfs_store *store,
                         const struct mfs_writeback_opts *opts);
/* Memory of the partitions has been freed by this mount: what was full may no more be. Until then a
 * write to a full partition fails at once, as long as the partition itself says that it is full. */
void mfs_writeback_freed(struct mfs_writeback *wb);

void mfs_writeback_destroy(struct mfs_writeback *wb); /* every file is gone before */

int mfs_dirty_create(struct mfs_dirty **d, struct mfs_writeback *wb, uint64_t ino,
                     mfs_dirty_commit_fn *commit, void *arg);
/* Some of the file's bytes are gathered elsewhere for a while (vfs/content/append.h): `fn` stores
 * what there is. It is called with the arg of the commit by each flush, before all else, with `due`
 * false, and by a sender at mono time `at` or somewhat later, with `due` true. Set again and again;
 * always the same function. No lock is held while it is called. */
typedef void mfs_dirty_gathered_fn(void *arg, bool due);
void mfs_dirty_gathered(struct mfs_dirty *d, mfs_dirty_gathered_fn *fn, int64_t at);
/* What is gathered counts for mfs_dirty_any; whether there is any now. */
void mfs_dirty_gathers(struct mfs_dirty *d, bool any);

void mfs_dirty_destroy(
    struct mfs_dirty *d); /* drops what was not flushed; waits for what is in flight */

/* Takes a copy of the bytes; blocks, bounded, while the window is full. `drops`: the writer may not
 * keep set-user-ID. 0, or an earlier error that no call has returned yet (then nothing was
 * taken). */
int mfs_dirty_write(struct mfs_dirty *d, uint64_t off, size_t len, const void *buf, bool drops);

/* Sends everything written before the call, waits until it is stored and committed. 0, or an error
 * that the caller's open file has not reported yet: *seen is how many it has, kept by the caller,
 * and changed by nothing else; mfs_dirty_seen says where it begins. NULL: there is no open file to
 * report to; the error of this flush, which is left for others. */
int mfs_dirty_flush(struct mfs_dirty *d, uint64_t *seen);

/* For a file that is being opened: of errors before, it reports those that no call has returned. */
uint64_t mfs_dirty_seen(struct mfs_dirty *d);

/* Forgets dirty bytes at or beyond `from` (a truncate follows); waits for those in flight. What was
 * stored already stays in the stripes, up to the end that mfs_dirty_attr told before the cut: that
 * end and data_end bound what the truncate has to trim. True when there was anything that no commit
 * had told of: it is lost when the truncate fails, and mfs_dirty_lost reports that to the
 * writers. */
bool mfs_dirty_cut(struct mfs_dirty *d, uint64_t from);
void mfs_dirty_lost(struct mfs_dirty *d, int rc);

bool mfs_dirty_any(struct mfs_dirty *d); /* anything not yet committed? */

/* The end of the furthest byte, how many there are (NULL: not asked; those written anew meanwhile
 * twice) and the time of the last write not yet committed; false if none. Ask before the attributes
 * are fetched, not after: a commit in between would be seen by neither. */
bool mfs_dirty_attr(struct mfs_dirty *d, uint64_t *end, uint64_t *bytes, struct timespec *mtime);

/* Copies dirty bytes of the range over buf, which holds the stored content of the same range: so a
 * reader sees what was written without a flush. True when there were any. */
bool mfs_dirty_overlay(struct mfs_dirty *d, uint64_t off, size_t len, void *buf);

/* What of the range is stored and not yet committed, or being so, counted from `off`, is added to
 * *stored; 0 or -ENOMEM. Ask before the attributes, as for mfs_dirty_attr. */
int mfs_dirty_stored(struct mfs_dirty *d, uint64_t off, size_t len, struct mfs_ranges *stored);

/* Counts the times that dirty bytes left this memory, as a rule for their stripe; never the same
 * for two files. What was read from a stripe before its bytes left may be older than what the
 * overlay had, and no longer has: mfs_readahead_read_over takes care of that. */
uint64_t mfs_dirty_mark(struct mfs_dirty *d);

/* Which stripes dirty bytes left since the mark was `since`: their number (each may be listed more
 * than once), or SIZE_MAX when they are too many to tell. *mark is the mark as of now. */
#define MFS_DIRTY_LEFT_MAX 64
size_t mfs_dirty_left(struct mfs_dirty *d, uint64_t since, uint32_t stripes[MFS_DIRTY_LEFT_MAX],
                      uint64_t *mark);

/* As flush, only for the stripes that hold bytes of the range, without commit, and leaving errors
 * for the writer to be told: after it the partitions have everything of the range. */
void mfs_dirty_store_range(struct mfs_dirty *d, uint64_t off, uint64_t len);

#endif
