/* What read-ahead's pool and its readers share. Internal to src/data.
 *
 * A fetched stripe (struct mfs_fetch) goes WAITING → COMING → READY or FAILED. Its handle's list
 * and each thread that works with it hold a reference; the content does not change once READY, so
 * it is copied without a lock. What is dropped leaves the list at once, whatever its state: no
 * later read can find it, and a thread that waits for it asks the stripe itself.
 *
 * A *straight* one is of one large read, and goes to that caller's buffer: no other read finds it,
 * and the read does not return, nor ask for the stripe itself, while it is COMING. */
#ifndef MFS_DATA_READAHEAD_READAHEAD_IMPL_H
#define MFS_DATA_READAHEAD_READAHEAD_IMPL_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "data/workers/bufs.h"
#include "data/workers/workers.h"
#include "data/workers/links.h"
#include "data/readahead/readahead.h"

enum mfs_fetch_state { MFS_FETCH_WAITING, MFS_FETCH_COMING, MFS_FETCH_READY, MFS_FETCH_FAILED };

struct mfs_fetch {
    struct mfs_readahead_pool *pool;
    uint64_t ino;
    uint32_t stripe, part;
    uint32_t len; /* bytes [0, len) of the stripe are here when READY */
    char *mem;
    size_t cap;    /* of mem, unless it is … */
    bool straight; /* … a caller's */

    /* Guarded by the pool's lock. */
    enum mfs_fetch_state state;
    bool queued;  /* on pool->waiting, which has a reference */
    bool in_turn; /* not run before its link has room, though a reader waits for it */
    int rc;       /* FAILED: why */
    unsigned refs;
    struct mfs_readahead *ra; /* NULL: dropped */
    uint32_t served;          /* bytes that readers took */
    TAILQ_ENTRY(mfs_fetch) in_ra;
    TAILQ_ENTRY(mfs_fetch)
    link; /* queued: pool->waiting; READY, not dropped nor straight: pool->ready */
};
TAILQ_HEAD(mfs_fetches, mfs_fetch);

struct mfs_readahead {
    struct mfs_readahead_pool *pool;
    uint64_t ino;
    uint32_t stripe_size; /* the file's */
    uint32_t most;        /* of its stripes ahead */
    uint32_t near;        /* bytes; so far apart reads of a sequence may be */

    /* Guarded by the pool's lock. */
    struct mfs_fetches fetches; /* a handful */
    uint64_t next;              /* end of the furthest read of the sequence */
    uint64_t begin, asked;      /* since here, so many bytes of it were read */
    unsigned run;               /* reads in sequence */
    uint32_t window;            /* stripes to be ahead; 0: not sequential */
    int64_t step, stepped_at; /* ns from stripe to stripe, the last ones counting most; since … */
    uint32_t looked;          /* stripes ahead of this one have been looked for */
    uint64_t mark;            /* of the dirty bytes at the last read */
};

struct mfs_readahead_pool {
    struct mfs_store *store;
    struct mfs_readahead_opts opts;
    struct mfs_bufs *bufs;
    uint32_t stripe_size; /* the deployment's */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t ended; /* a fetch is READY, FAILED or dropped */
    bool stop;
    struct mfs_workers fetchers;
    struct mfs_links links;
    size_t bytes;                      /* of buffers */
    struct mfs_fetches waiting, ready; /* oldest first */
};

/* The pool's lock is held for all of these. */

/* A new fetch of the stripe's first len bytes, on the handle's list, with a reference for the
 * caller; NULL when memory is short. WAITING, on no queue. */
struct mfs_fetch *mfs_fetch_new(struct mfs_readahead *ra, uint32_t stripe, uint32_t len);
/* The same, straight to the caller's buffer. */
struct mfs_fetch *mfs_fetch_new_straight(struct mfs_readahead *ra, uint32_t stripe, uint32_t len,
                                         char *to);
void mfs_fetch_put(struct mfs_fetch *f);  /* gives a reference back */
void mfs_fetch_drop(struct mfs_fetch *f); /* takes it off the handle's list */
/* Has a fetcher run it, those that readers wait for first. */
void mfs_fetch_queue(struct mfs_fetch *f);
/* Runs a WAITING fetch in the calling thread, which has a reference; the lock is dropped meanwhile.
 */
void mfs_fetch_run(struct mfs_fetch *f);
/* Takes those of stripes first to last off the handle's list. */
void mfs_fetches_drop(struct mfs_readahead *ra, uint64_t first, uint64_t last);

/* --- no lock --- */

/* Bytes of a read are at their place in the caller's buffer. `view` may be NULL. */
void mfs_view_copied(struct mfs_view *view, char *p, size_t len);

#endif
