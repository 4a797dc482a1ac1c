/* What the store's own files share: store.c (life, tables), pool.c and idle.c (connections),
 * fence.c (partitions that are being moved), batch.c and exec.c (calls), confirm.c (replicas),
 * post.c (commands without waiting).
 *
 * Lock order: a post lane's lock, then mfs_store.lock, then mfs_post's own lock. None is held over
 * anything that waits for the network. */
#ifndef MFS_STORE_INTERNAL_H
#define MFS_STORE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "cluster/table.h"
#include "cluster/trust.h"
#include "store/channel.h"
#include "store/metrics.h"
#include "store/store.h"

#define MFS_STORE_CONNECT_NS (5 * MFS_SEC) /* a connection attempt takes at most this */

struct mfs_post;

/* Belongs to pool.c, idle.c, store.c and fence.c. Guarded by mfs_store.lock. */
struct mfs_part {
    struct mfs_channel *idle; /* most recently used first */
    uint32_t nidle;
    struct mfs_channel *busy; /* lanes have them */
    uint64_t gen;             /* of the address: connections of another one are not used again */
    int64_t down_since;       /* it could not be reached, which the log has said; 0: all is well */
    int64_t gone_since; /* nothing listens there any more; 0: something does, or it is not known */
    int64_t
        silent_until; /* it took a connection and said nothing: until then no caller waits long */

    bool fenced;          /* its process refuses everything, … */
    bool lapsed;          /* … as its replica does not consent any more */
    bool probing;         /* a thread is asking whether it still does */
    int64_t fenced_since; /* when it first did */
    int64_t probe_at;     /* when to ask next */

    unsigned series; /* of its node, in the store's figures */
    struct {         /* for who looks: mfs_store_parts */
        uint64_t trips;
        int64_t ns;                 /* all of them */
        int64_t least, least_since; /* the shortest one, and since when … */
        int64_t least_before;       /* … and of the time before that; 0: none */
        uint32_t waiting;           /* lanes under way */
        int64_t since;              /* something has come back, or nothing was on the way */
        int64_t full_at;            /* it had no memory; 0: never */
    } seen;
};

struct mfs_store {
    uint32_t nparts, stripe_size;
    struct mfs_store_opts opts; /* defaults filled in */
    struct mfs_post *post;
    struct mfs_store_figures figures; /* nodes get their series with lock held */
    atomic_bool ending;               /* mfs_store_ending */
    _Atomic int64_t
        vain_since; /* mono: once ending, since when what was asked has no answer; 0: all has */
    atomic_bool replicated;      /* as the table says: partitions have replicas, or will have */
    _Atomic uint64_t posts_lost; /* mfs_store_posts_lost */
    _Atomic uint64_t failovers;  /* of the newest table */
    _Atomic uint64_t lapses;     /* so often it was not known for too long whether cm is there */
    _Atomic int64_t contact_at;  /* mono: cm was there */
    _Atomic(mfs_store_fault_fn *) fault;
    _Atomic(void *) fault_arg;

    pthread_mutex_t lock;
    pthread_cond_t changed;  /* a new table, or news of a fence */
    struct mfs_table *table; /* guarded by lock, like all that follows */
    struct mfs_store_watch *watches;
    struct mfs_part *part;      /* nparts */
    uint32_t nidle;             /* connections of all parts that wait, … */
    uint32_t hand;              /* … whose partition was last to give one up, … */
    int64_t idle_look;          /* … and when to look for those that have waited for long */
    struct mfs_lost_node *lost; /* nodes, at `lost_at` (mono); NULL: none */
    size_t nlost;
    int64_t lost_at;
    int64_t complained; /* when an unexpected error reply was last logged */
};

/* The commands of one call for one partition, and what became of them in this attempt. */
struct mfs_lane {
    uint32_t part;
    struct mfs_cmd **cmds;
    size_t n, done;           /* cmds[0 … done) have been answered */
    struct mfs_channel *conn; /* from the pool, or NULL: connect */
    uint64_t gen;             /* of the address that it went to … */
    unsigned series;          /* … and of its node */
    bool open;                /* under way */
    bool dialled;             /* its connection has not logged on yet */
    int64_t began, took;      /* this attempt: mono, ns */
    bool fresh;               /* take no connection from the pool */
    bool stale;               /* failed on a pooled connection that its peer had closed */
    bool refused;             /* some commands were refused by a fence, … */
    bool lapsed;              /* … or by one whose term is over, … */
    unsigned refusals;        /* … in so many attempts */
    bool full;                /* some commands found no memory where room may come */
    int rc;                   /* of the connection */
};

/* Waits while a lane's partition is fenced (mfs_fence_wait), then gives each lane an idle
 * connection, if there is one; *epoch is the table's. On success the lanes are under way from *now
 * (mono) on. */
int mfs_pool_enter(struct mfs_store *store, struct mfs_lane *lanes, size_t n, uint64_t *epoch,
                   int64_t *now);

/* The lane has its connection: a table that says that a replica serves instead breaks it, as the
 * process at its other end may hang. */
void mfs_pool_hold(struct mfs_store *store, struct mfs_lane *lane);

/* Breaks the connections that lanes have to the partition. store->lock is held. */
void mfs_pool_break(struct mfs_part *part);

/* A command found no memory there. */
void mfs_pool_full(struct mfs_store *store, uint32_t part);

/* The lane is over. Its connection goes back to the pool when its rc is 0. */
void mfs_pool_leave(struct mfs_store *store, struct mfs_lane *lane);

/* Opens a connection to where the table says the partition is; blocks at most timeout_ns, and
 * hardly for as long after another caller has waited in vain: else a process that hangs would cost
 * each caller that much. 0, -ETIMEDOUT, -ECONNREFUSED (it is gone), -ENOMEM, -EACCES or -EIO,
 * having logged the first failure. */
int mfs_pool_connect(struct mfs_store *store, uint32_t part, int64_t timeout_ns,
                     struct mfs_channel **conn);
/* The same in two steps, as mfs_channel_begin and mfs_channel_ready. When the second fails, the
 * connection is closed, and *conn NULL. */
int mfs_pool_begin(struct mfs_store *store, uint32_t part, int64_t timeout_ns,
                   struct mfs_channel **conn);
int mfs_pool_ready(struct mfs_store *store, uint32_t part, struct mfs_channel **conn);

/* Notes that the partition failed at the address of that generation, if it is still there (logged
 * when that is news), and drops its idle connections. */
void mfs_pool_down(struct mfs_store *store, uint32_t part, uint64_t gen, const char *why);

void mfs_pool_close_all(struct mfs_channel *list);

uint64_t mfs_pool_gen(struct mfs_store *store, uint32_t part);

/* Whether a replica serves instead of the process at the other end, which may hang. */
bool mfs_pool_replaced(struct mfs_store *store, uint32_t part, const struct mfs_channel *conn);

/* Waits at most ns until one of the lanes' partitions is elsewhere than where the lane went, or,
 * unless `epoch` is 0, there is a table of another epoch; returns whether that is so. */
bool mfs_pool_wait_moved(struct mfs_store *store, const struct mfs_lane *lanes, size_t n,
                         uint64_t epoch, int64_t ns);

/* Until when a new table may help the lanes: opts.table_wait from now, or from when the partitions
 * could first not be reached. */
int64_t mfs_pool_give_up(struct mfs_store *store, const struct mfs_lane *lanes, size_t n);

/* Counts a posted command of so many bytes; returns the generation of its address. */
uint64_t mfs_pool_count_post(struct mfs_store *store, uint32_t part, size_t bytes);

/* A partition is fenced when its process refuses every command of ours: it is being moved. What it
 * refused was surely not executed. That ends with a table in which it has another address, or, when
 * the move is given up, with the process answering again. */
#define MFS_FENCE_REFUSALS 16 /* of a command that is refused though there is no fence */

/* Whether the error reply is what a fence says. */
bool mfs_fence_refuses(const struct mfs_cmd *cmd, const struct mfs_err *err);

/* Whether it refuses because its term is over (decisions/0017): a client that is cut off with such
 * a process waits no longer than for one that does not answer. */
bool mfs_fence_is_lapse(const struct mfs_err *err);

/* Notes that a command was refused at the address of that generation. */
void mfs_fence_seen(struct mfs_store *store, uint32_t part, uint64_t gen, bool lapsed);

/* Waits, at most opts.fence_wait, while one of the lanes' partitions is fenced. Returns 0, or -EIO,
 * having logged it. *now (mono) goes on when it has waited. store->lock is held, and given up
 * meanwhile. */
int mfs_fence_wait(struct mfs_store *store, const struct mfs_lane *lanes, size_t n, int64_t *now);

/* Whether the partition is fenced; asks its process when it is time to. */
bool mfs_fence_closed(struct mfs_store *store, uint32_t part);

/* The partition has another address. store->lock is held. */
void mfs_fence_lift(struct mfs_store *store, uint32_t part);

/* mfs_store_exec without waiting for replicas. Sets every cmd->rc; returns the first error. */
int mfs_exec_once(struct mfs_store *store, struct mfs_cmd *cmds, size_t n);

/* mfs_store_exec with replicas: every cmd->rc is set when they have what the commands wrote. */
void mfs_exec_confirmed(struct mfs_store *store, struct mfs_cmd *cmds, size_t n);

/* The earlier of `until` (mono) and, at the client's end, ns after it began to wait in vain: now,
 * if it does not yet. */
static inline int64_t mfs_store_until(struct mfs_store *store, int64_t until, int64_t ns)
{
    int64_t since;

    if (!atomic_load_explicit(&store->ending, memory_order_acquire))
        return until;
    since = atomic_load_explicit(&store->vain_since, memory_order_relaxed);
    if (since == 0)
        since = mfs_clock_mono();
    return since + ns < until ? since + ns : until;
}

/* Partitions are asked something, or waited for. What is bounded at a client's end is waiting in
 * vain, not a pause in which nothing was asked. */
static inline void mfs_store_asks(struct mfs_store *store, int64_t now)
{
    int64_t answered = 0;

    if (atomic_load_explicit(&store->ending, memory_order_acquire))
        atomic_compare_exchange_strong(&store->vain_since, &answered, now);
}

/* … and one has answered. */
static inline void mfs_store_heard(struct mfs_store *store)
{
    if (atomic_load_explicit(&store->ending, memory_order_acquire))
        atomic_store_explicit(&store->vain_since, 0, memory_order_relaxed);
}

/* Calls the fault hook; 0 without one. */
int mfs_store_fault(struct mfs_store *store, const struct mfs_cmd *cmd);

/* Logs an error reply that has no errno of its own; at most one line per second. */
void mfs_store_complain(struct mfs_store *store, const struct mfs_cmd *cmd, const char *text);

struct mfs_batch {
    struct mfs_lane *lanes;
    size_t nlanes;
    struct mfs_cmd **cmds;    /* grouped by partition, each group in the order given */
    struct mfs_lane one_lane; /* what a call with a single command needs */
    struct mfs_cmd *one_cmd;
};

/* Groups n > 0 commands by partition and clears their results. Returns 0, -ENOMEM, or -EINVAL when
 * a partition does not exist. */
int mfs_batch_init(struct mfs_batch *batch, struct mfs_cmd *cmds, size_t n, uint32_t nparts);
void mfs_batch_fini(struct mfs_batch *batch);

int mfs_post_create(struct mfs_post **post, struct mfs_store *store);
void mfs_post_destroy(struct mfs_post *post);
/* A caller waits for posted commands: for some ms to come replies are read as they arrive. */
void mfs_post_hurry(struct mfs_post *post);

/* --- connections that wait for the next call (idle.c); mfs_store.lock is held, what is returned to
 * be closed is closed without it --- */

/* The one that was used last, or NULL. */
struct mfs_channel *mfs_idle_pop(struct mfs_store *store, struct mfs_part *part);

/* Keeps it. Returns what is to be closed instead, and whatever else is due; a list, or NULL. */
struct mfs_channel *mfs_idle_push(struct mfs_store *store, struct mfs_part *part,
                                  struct mfs_channel *conn, int64_t now);

/* One, to be closed; NULL: there is none. */
struct mfs_channel *mfs_idle_give_up(struct mfs_store *store);

/* All of the partition, to be closed. */
struct mfs_channel *mfs_idle_take(struct mfs_store *store, struct mfs_part *part);

#endif
