/* What the files of write-behind share. Internal to src/data.
 *
 * Dirty bytes of one stripe of one file are a chunk: a buffer and the set of ranges in it that were
 * written. A chunk's way:
 *
 *              write                    full, old, wanted by a flush, or memory is short
 *     (none) ───────> IDLE ────────────────────────────────────────────> QUEUED
 *        │             ^ └───────────── taken by a flushing thread ──┐     │ sender
 *        │       flight│ended                                        v     v
 *        └──────────> HELD                             ┌────────── TAKEN (detached: in_flight)
 *       (an older chunk of the                   full  v             │ stored, failed, or cut
 *        stripe is in_flight)                         DELAYED ─> QUEUED v
 *                                                                  (gone)
 *
 * Until a thread has detached it, a chunk takes further writes whatever its state. From then on it
 * does not change any more, writes go to a new chunk, and that one is not sent before the first has
 * ended: so an older version never overwrites a newer one.
 *
 * Lock order: mfs_dirty.lock, then mfs_writeback.lock. Neither is held over the network. */
#ifndef MFS_DATA_WRITEBACK_WRITEBACK_IMPL_H
#define MFS_DATA_WRITEBACK_WRITEBACK_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "base/metrics.h"
#include "base/table.h"
#include "data/workers/bufs.h"
#include "data/workers/workers.h"
#include "data/workers/links.h"
#include "data/stripes/stripe_io.h"
#include "data/writeback/writeback.h"

#define MFS_WB_BATCH  32   /* most chunks of one round trip */
#define MFS_WB_PLACES 4096 /* stored in more: committed at once, whatever is dirty between them */

enum mfs_chunk_state {
    MFS_CHUNK_HELD,
    MFS_CHUNK_IDLE,    /* on wb->idle */
    MFS_CHUNK_QUEUED,  /* on its partition's queue */
    MFS_CHUNK_TAKEN,   /* belongs to the thread that sends it */
    MFS_CHUNK_DELAYED, /* on wb->delayed */
};

struct mfs_slot;

struct mfs_chunk {
    struct mfs_dirty *d;
    struct mfs_slot *slot;
    uint64_t id; /* counts up within the file */
    uint32_t stripe, part;
    int64_t dirtied_at; /* mono: its first byte */

    /* Guarded by d->lock; all but `in_flight` no longer change once it is in_flight. */
    TAILQ_ENTRY(mfs_chunk) in_file;
    struct mfs_ranges ranges;
    uint32_t base; /* mem[0] is this byte of the stripe */
    char *mem;
    size_t cap; /* of mem */
    struct timespec mtime;
    bool drops; /* as in mfs_dirty_commit */
    bool in_flight;
    bool wanted;         /* HELD: to be queued, not idle, when it may go */
    bool give_up;        /* in flight, but not wanted any more */
    atomic_bool no_room; /* its partition had no memory for it when it was sent last */

    /* Guarded by wb->lock. */
    TAILQ_ENTRY(mfs_chunk) link; /* in the list of its state */
    enum mfs_chunk_state state;
    size_t counted; /* on its way (links.h) */
    int64_t full_since, retry_at;
    unsigned tries;
};
TAILQ_HEAD(mfs_chunks, mfs_chunk);

struct mfs_slot { /* a stripe of a file; there while it has a chunk */
    uint32_t stripe;
    struct mfs_chunk *open, *in_flight;
    UT_hash_handle hh;
};

struct mfs_stored { /* in the stripes, not yet committed */
    bool any;
    bool fresh; /* something since the last commit */
    bool drops; /* as in mfs_dirty_commit */
    struct mfs_ranges ranges;
    int64_t alloc;
    struct timespec mtime;
};

struct mfs_dirty {
    struct mfs_writeback *wb;
    uint64_t ino;
    uint32_t stripe_size; /* the file's */
    mfs_dirty_commit_fn *commit;
    void *arg;
    _Atomic(mfs_dirty_gathered_fn *) gathered; /* set once; NULL: nothing ever was */
    atomic_bool gathers;

    pthread_mutex_t lock;   /* guards what follows */
    pthread_cond_t changed; /* a chunk or a commit has ended */
    struct mfs_slot *slots;
    struct mfs_chunks chunks; /* by id */
    uint64_t next_id;
    uint64_t mark;
    uint32_t left[MFS_DIRTY_LEFT_MAX]; /* stripe of the mark-th chunk that left, modulo */
    uint64_t last_end;                 /* of the last write, to know a sequential one */
    struct mfs_stored stored, committing;
    unsigned flushing;        /* calls of flush under way: they commit */
    int write_error;          /* not told yet by write or flush */
    int flush_error;          /* the first since one was reported */
    uint64_t errors;          /* so many there were … */
    uint64_t errors_reported; /* … that any call has returned */

    /* Guarded by wb->lock. */
    size_t bytes; /* of buffers */
    TAILQ_ENTRY(mfs_dirty) due;
    bool is_due; /* on wb->due */
    int64_t due_at;
    unsigned commit_busy; /* senders about to commit it */
};
TAILQ_HEAD(mfs_dirties, mfs_dirty);

struct mfs_wb_part { /* a partition */
    struct mfs_chunks queue;
    TAILQ_ENTRY(mfs_wb_part) ready;
    bool is_ready;
    int64_t full_until; /* surely full: writes fail at once until then */
    int64_t stored_at;  /* when it last took something */
    int64_t failed_at;  /* when it last kept a sender waiting in vain */
    int failed_rc;
};

enum mfs_wb_metric { MFS_WB_WINDOW_TIME, MFS_WB_FAILURES, MFS_WB_LOST, MFS_WB_METRICS };

struct mfs_writeback {
    struct mfs_store *store;
    struct mfs_writeback_opts opts;
    struct mfs_bufs *bufs;
    struct mfs_metric_set *metrics; /* enum mfs_wb_metric */
    uint32_t stripe_size;           /* the deployment's */
    uint32_t nparts;
    _Atomic int64_t full_until; /* the latest of all partitions */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t room;  /* buffers were given back, or a commit has ended */
    bool stop;
    struct mfs_workers senders;
    struct mfs_links links;
    unsigned waiters; /* on room */
    size_t bytes, idle_bytes;
    struct mfs_chunks idle, delayed; /* oldest first */
    TAILQ_HEAD(, mfs_wb_part)
    ready;                  /* with something queued and not too much on its way, though
                             * its link may have */
    struct mfs_dirties due; /* files to be committed */
    struct mfs_wb_part *parts;
};

/* --- queue.c: queues and windows --- */

/* Books `need` bytes of buffer for the file, if they fit; otherwise, or when it gets tight, has
 * idle chunks sent. d->lock is held. */
bool mfs_wb_reserve(struct mfs_dirty *d, size_t need);
void mfs_wb_release(struct mfs_dirty *d, size_t bytes);
/* Waits a moment for `need` bytes to fit; no lock is held. 0, or when `until` has passed -ENOSPC or
 * -EIO. */
int mfs_wb_wait_room(struct mfs_dirty *d, size_t need, int64_t until);

void mfs_wb_idle(struct mfs_chunk *c);  /* a new or HELD chunk lingers from now on */
void mfs_wb_queue(struct mfs_chunk *c); /* a new, HELD or IDLE one is to be sent; else nothing */
void mfs_wb_resize(struct mfs_chunk *c, size_t cap); /* sets c->cap, releases the old one */

/* Takes the chunk off its list for the caller: from now on TAKEN; false when another thread has it.
 */
bool mfs_wb_take(struct mfs_chunk *c);

/* After -ENOSPC or -EAGAIN: has a TAKEN chunk sent again later, or says that it is of no use. */
bool mfs_wb_delay(struct mfs_chunk *c, int rc);
/* A TAKEN chunk is not on its way any more. */
void mfs_wb_complete(struct mfs_chunk *c);
/* A TAKEN chunk that was sent alone was stored after so many ns. */
void mfs_wb_took(struct mfs_chunk *c, int64_t ns);

/* Was the partition declared full at or after `since`, and a second ago at most? */
bool mfs_wb_full_since(struct mfs_writeback *wb, uint32_t part, int64_t since);
/* Was it declared full, and does it say so itself? No lock is held. */
bool mfs_wb_still_full(struct mfs_writeback *wb, uint32_t part);
void mfs_wb_declare_full(struct mfs_writeback *wb, uint32_t part);

/* For senders, which hold wb->lock: a batch of chunks that are TAKEN then, and what is old
 * enough. */
size_t mfs_wb_pop_batch(struct mfs_writeback *wb, struct mfs_chunk **batch);
void mfs_wb_wake_old(struct mfs_writeback *wb, int64_t now);

/* --- writeback.c: commits when they are due --- */

void mfs_wb_commit_at(struct mfs_dirty *d, int64_t at); /* d->lock is held */
void mfs_wb_commit_never(struct mfs_dirty *d);          /* also waits for one under way */

/* --- send.c --- */

/* Sends TAKEN chunks, n ≤ MFS_WB_BATCH, of any files, and settles each. No lock is held. */
void mfs_wb_send(struct mfs_writeback *wb, struct mfs_chunk **chunks, size_t n);

/* Moves an open chunk to its slot's in_flight place; d->lock is held. False: nothing in it. */
bool mfs_chunk_detach(struct mfs_chunk *c);

/* Settles a TAKEN chunk that was stored (put->rc 0) or not; frees it. d->lock is held. */
void mfs_chunk_settle(struct mfs_chunk *c, const struct mfs_stripe_put *put);
void mfs_chunk_drop(struct mfs_chunk *c); /* a TAKEN chunk that is not wanted; d->lock is held */

/* --- flush.c --- */

void mfs_dirty_fail(struct mfs_dirty *d, int rc);             /* keeps the error; d->lock is held */
void mfs_dirty_store_gathered(struct mfs_dirty *d, bool due); /* no lock is held */
void mfs_dirty_commit_behind(struct mfs_dirty *d); /* by a sender, when due; no lock is held */

#endif
