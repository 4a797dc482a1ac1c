/* What this mount knows of an inode that is open here: dirty data, the newest attributes, locks.
 *
 * One struct mfs_vnode per open inode, found by ino, counted by its users. It is forgotten with the
 * last one, after its data have been flushed; what has to be known longer (the version of the
 * kernel's pages) is in vfs/vnode/pages.h.
 *
 * `generation` changes whenever content may have changed beside its users (a write begins, a commit
 * ends, another mount's change is noticed). What keeps content of the file beside the dirty data
 * remembers the generation under which it was fetched, and drops it when that is no longer the
 * current one. */
#ifndef MFS_VFS_VNODE_VNODE_H
#define MFS_VFS_VNODE_VNODE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/table.h"
#include "data/readahead/readahead.h"
#include "data/stripes/geometry.h"
#include "data/writeback/writeback.h"
#include "vfs/vnode/latch.h"
#include "vfs/vnode/pages.h"
#include "vfs/vfs.h"

#define MFS_VNODE_SHARDS 64

struct mfs_vnode_shard {
    pthread_mutex_t lock; /* guards the table and the counts in it; order: docs/design/locking.md */
    struct mfs_vnode *table;
};

struct mfs_lock_wait;
struct mfs_listed;

enum mfs_vfs_metric { MFS_VFS_OPENS, MFS_VFS_METRICS };

struct mfs_vfs {
    struct mfs_store *store; /* borrowed */
    struct mfs_meta *meta;
    struct mfs_writeback *wb;
    struct mfs_readahead_pool *ra;
    struct mfs_pages *pages;
    struct mfs_lock_wait *waits;
    struct mfs_listed *listed; /* NULL without leases */
    struct mfs_vfs_opts opts;
    struct mfs_metric_set *metrics;              /* enum mfs_vfs_metric */
    uint32_t stripe_size;                        /* the deployment's */
    _Atomic(mfs_vfs_invalidate_fn *) invalidate; /* set once, after its argument */
    _Atomic(void *) invalidate_arg;
    _Atomic(mfs_meta_revoked_fn *) revoke; /* likewise */
    _Atomic(mfs_meta_distrust_fn *) distrust;
    _Atomic(void *) revoke_arg; /* of both */
    _Atomic(mfs_meta_recalled_fn *) recall;
    _Atomic(void *) recall_arg;
    atomic_uint_fast64_t removals; /* names that this mount removed or replaced */
    atomic_uint_fast64_t opened;   /* files, ever */
    atomic_size_t head_bytes;      /* in all handles' heads, see vfs/content/head.h */
    struct mfs_vnode_shard shard[MFS_VNODE_SHARDS];
};

struct mfs_vnode {
    uint64_t ino;
    struct mfs_vfs *vfs;
    unsigned refs;     /* guarded by the shard's lock */
    UT_hash_handle hh; /* likewise */

    atomic_uint_fast64_t generation;
    atomic_uint writers;               /* handles that may write */
    atomic_uint changing;              /* own changes that mfs_vnode_carry has yet to be told of */
    _Atomic(struct mfs_dirty *) dirty; /* made by the first write, stays until the end */
    struct mfs_latch latch;            /* of writers, closed while the file is cut */

    pthread_mutex_t
        lock; /* guards what follows; nothing is called with it held but mfs_dirty_create */
    uint64_t
        noticed;   /* another mount has made this version: attributes before it are no more true */
    bool known;    /* attr is set */
    uint64_t cuts; /* attr.cuts before the first of what is not committed was stored */
    struct mfs_attr attr;        /* the newest seen, by version; sizes without what is dirty */
    struct mfs_file *files;      /* open handles, for the end of all */
    struct mfs_owner_id *owners; /* of fcntl locks, by number (vfs/locks/lock_owners.h) */
    struct mfs_ranges voids;
    uint64_t voids_version; /* of the file, that they were asked for at; 0: not yet */

    struct {
        atomic_uint_fast64_t told; /* the end that the kernel knows; without the lock */
        uint64_t size;             /* that a recent read to the end went by */
        int64_t read_at;           /* when, by mfs_clock_mono; 0: no reader waits for bytes */
        uint32_t reader;           /* the thread; 0: several, or not known */
    } tail;                        /* see vfs/content/tail.h */

    struct {
        pthread_mutex_t lock;   /* guards what follows; order: docs/design/locking.md */
        pthread_cond_t changed; /* busy has ended */
        bool busy;              /* a thread appends at the home */
        char *buf;              /* what is gathered, from `begin` on; NULL: nothing yet */
        size_t n;               /* of it, in bytes */
        uint64_t begin;         /* where the file ended */
        uint32_t drop;          /* MFS_DROP_* of what is gathered */
        struct timespec mtime;  /* of the last of it */
        struct mfs_end_lease lease;
        bool recalled; /* another mount wants the lease */
        bool failed;   /* something could not be stored: the next append tells */
        int64_t last;  /* when the last append began; mono */
        int64_t again; /* before this no lease is asked for */
    } append;          /* see vfs/content/append.h */

    struct {
        struct mfs_ranges ranges;       /* that the kernel has read into pages */
        unsigned dropping;              /* writes that wait until some of them are gone */
        bool append_moved;              /* see mfs_fills_append_moved */
        int64_t dropped_at;             /* when the kernel last dropped pages at our word */
        const struct mfs_file *dropper; /* whose open it was; NULL: something else, or several */
    } fills;                            /* see vfs/content/fills.h */
};

/* A reference to the vnode, made if need be; NULL: ENOMEM. put may flush nothing: callers do. */
struct mfs_vnode *mfs_vnode_get(struct mfs_vfs *vfs, uint64_t ino);
struct mfs_vnode *mfs_vnode_find(struct mfs_vfs *vfs, uint64_t ino); /* NULL when not open here */
void mfs_vnode_put(struct mfs_vnode *v);                             /* takes NULL */

void mfs_vnode_init_shards(struct mfs_vfs *vfs);
/* Flushes all that is left; `files` frees a vnode's open files. The vnodes stay: a thread that is
 * told of a change may have one of them just now. */
void mfs_vnode_abandon_all(struct mfs_vfs *vfs, void (*files)(struct mfs_vnode *v));
/* Frees them; changes are notified no more. */
void mfs_vnode_fini_shards(struct mfs_vfs *vfs);

/* Lays what is not yet committed over attributes just fetched, which are learned (see below) on the
 * way. A commit that ended after they were fetched is either still pending or in what is known. */
void mfs_vnode_overlay(struct mfs_vnode *v, struct mfs_attr *attr);

/* Attributes just fetched: kept if they are newer than what is known; if what is known is newer
 * (the replies overtook each other) it replaces *attr. `own`: this mount made that version. */
void mfs_vnode_learn(struct mfs_vnode *v, struct mfs_attr *attr, bool own);

/* This mount's change led from version `from` to attr's. */
void mfs_vnode_carry(struct mfs_vnode *v, uint64_t from, struct mfs_attr *attr);

/* The pages that the kernel holds may be wrong; drops them, without waiting, or waits for `most` ns
 * and says whether that was enough. */
void mfs_vnode_drop_pages(struct mfs_vnode *v);
bool mfs_vnode_drop_pages_wait(struct mfs_vnode *v, int64_t most);

/* An mfs_meta_changed_fn: another mount has changed what is open here. */
void mfs_vnode_changed_elsewhere(void *vfs, uint64_t ino, uint64_t version,
                                 void (*done)(void *done_arg), void *done_arg);

bool mfs_vnode_attr(struct mfs_vnode *v, struct mfs_attr *attr); /* what is known; false: nothing */

/* Bytes that the file can have. */
static inline uint64_t mfs_vnode_size_max(const struct mfs_vnode *v)
{
    return MFS_FILE_SIZE_MAX(mfs_store_stripe_of(v->vfs->store, v->ino));
}

static inline void mfs_vnode_changed(struct mfs_vnode *v)
{
    atomic_fetch_add(&v->generation, 1);
}

/* Everything written so far, stored and committed. Errors are told as mfs_dirty_flush does: `seen`
 * is of the open file that asks, NULL: no file can be told now. After an error the kernel's
 * pages hold what was never stored: they are dropped, before it is told (waits for a second at
 * most). */
int mfs_vnode_flush(struct mfs_vnode *v, uint64_t *seen);

/* Likewise for what the kernel writes back of a mapping, after the write. It does not wait for the
 * pages: they are locked until the write is answered. */
int mfs_vnode_write_back(struct mfs_vnode *v, uint64_t *seen);

#endif
