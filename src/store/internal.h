/* What the store's own files share: store.c (life, tables, suspension), pool.c (connections),
 * batch.c and exec.c (calls), post.c (commands that nobody waits for).
 *
 * Lock order: a post lane's lock, then mfs_store.lock, then mfs_post's own lock. None is held over
 * anything that waits for the network. */
#ifndef MFS_STORE_INTERNAL_H
#define MFS_STORE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "cluster/table.h"
#include "store/channel.h"
#include "store/store.h"

#define MFS_STORE_CONNECT_NS (5 * MFS_SEC) /* a connection attempt takes at most this */

struct mfs_post;

/* All but `gen` of a partition belongs to pool.c and store.c. Guarded by mfs_store.lock. */
struct mfs_part {
    struct mfs_channel *idle; /* most recently used first */
    uint32_t nidle;
    uint32_t inflight; /* calls and posted commands under way */
    uint64_t gen;      /* of the address: connections of another one are not used again */
    bool suspended;
    bool down; /* said so in the log */
};

struct mfs_store {
    uint32_t nparts, stripe_size;
    struct mfs_store_opts opts; /* defaults filled in */
    struct mfs_post *post;
    _Atomic(mfs_store_fault_fn *) fault;
    _Atomic(void *) fault_arg;

    pthread_mutex_t lock;
    pthread_cond_t changed;  /* resumed, nothing in flight any more, or a new table */
    struct mfs_table *table; /* guarded by lock, like all that follows */
    struct mfs_part *part;   /* nparts */
    struct mfs_store_stats stats;
    int64_t complained; /* when an unexpected error reply was last logged */
};

/* The commands of one call for one partition, and what became of them in this attempt. */
struct mfs_lane {
    uint32_t part;
    struct mfs_cmd **cmds;
    size_t n, done;           /* cmds[0 … done) have been answered */
    struct mfs_channel *conn; /* from the pool, or NULL: connect */
    bool open;                /* under way */
    bool fresh;               /* take no connection from the pool */
    bool stale;               /* failed on a pooled connection that its peer had closed */
    int rc;                   /* of the connection */
};

/* Waits (until the deadline) while a lane's partition is suspended, then counts all lanes in and
 * gives each an idle connection, if there is one; *epoch is the table's. Returns 0 or -ETIMEDOUT,
 * counting none in. */
int mfs_pool_enter(struct mfs_store *store, struct mfs_lane *lanes, size_t n, int64_t deadline,
                   uint64_t *epoch);

/* Counts the lane out. Its connection goes back to the pool when its rc is 0. */
void mfs_pool_leave(struct mfs_store *store, struct mfs_lane *lane);

/* Opens a connection to where the table says the partition is; blocks at most timeout_ns. 0,
 * -ETIMEDOUT, -ENOMEM, -EACCES or -EIO, having logged the first failure. */
int mfs_pool_connect(struct mfs_store *store, uint32_t part, int64_t timeout_ns,
                     struct mfs_channel **conn);

/* Notes that the partition failed (logged when that is news) and drops its idle connections. */
void mfs_pool_down(struct mfs_store *store, uint32_t part, const char *why);

void mfs_pool_close_all(struct mfs_channel *list);

/* Waits until a table newer than `epoch` comes, at most ns. */
void mfs_pool_wait_table(struct mfs_store *store, uint64_t epoch, int64_t ns);

/* As enter, for one posted command of so many bytes; *gen is the address' generation. */
int mfs_pool_enter_post(struct mfs_store *store, uint32_t part, int64_t deadline, size_t bytes,
                        uint64_t *gen);
void mfs_pool_leave_post(struct mfs_store *store, uint32_t part, uint32_t n);

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
/* Somebody waits for posted commands: for some ms to come replies are read as they arrive. */
void mfs_post_hurry(struct mfs_post *post);

#endif
