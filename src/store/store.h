/* The one interface to the partitions: commands go out, replies come back.
 *
 * A call takes any number of commands for any partitions. All are sent before the first reply is
 * awaited, commands for one partition travel in one pipeline and are executed in the given order,
 * so a call costs one round trip however many commands it carries.
 *
 * A partition may move to another node at any time: its process then refuses everything ("fence"),
 * and what it refused is sent again, in order, to where a newer table says that it is.
 *
 * Where a partition has a replica, a command that writes is answered here when the replica has it,
 * too (confirm.c).
 *
 * Threads: every function may be called by any thread; mfs_store_exec blocks its caller, bounded
 * by the I/O timeout and the waits of the options. A connection belongs to one thread at a time and
 * no lock is held over the network. */
#ifndef MFS_STORE_STORE_H
#define MFS_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MFS_NO_NODE UINT32_MAX

struct mfs_lost_node;
struct mfs_metrics;
struct mfs_store;
struct mfs_reply;
struct mfs_table;

struct mfs_store_opts {
    uint32_t node;      /* partitions of this node (and of others on this machine) are reached by
                           their UNIX socket; MFS_NO_NODE: none */
    int64_t io_timeout; /* ns a command may take, connecting included; 0: 30 s */
    int64_t table_wait; /* ns to wait for a new table when a partition is unreachable; 0: none */
    int64_t fence_wait; /* ns to wait for a partition that is being moved; 0: io_timeout */
    int64_t full_wait;  /* ns to wait for memory while the table says that it grows; 0: none */
    uint32_t idle_per_part;      /* connections kept open per partition; 0: 8 */
    uint32_t idle_most;          /* and to all of them; 0: half of the process' descriptors */
    int64_t idle_time;           /* ns without a command, then they are closed; 0: 30 s */
    struct mfs_metrics *metrics; /* that the store's figures are registered with; NULL: none */
};

/* Takes over `table` (freed with free()). Nothing is connected yet. Returns 0 or -errno. */
int mfs_store_create(struct mfs_store **store, struct mfs_table *table,
                     const struct mfs_store_opts *opts);
void mfs_store_destroy(struct mfs_store *store); /* no call may be under way; NULL is fine */

uint32_t mfs_store_nparts(const struct mfs_store *store);
uint32_t mfs_store_stripe_size(const struct mfs_store *store); /* bytes, of the deployment */
/* Bytes of the stripes of an inode. */
uint32_t mfs_store_stripe_of(const struct mfs_store *store, uint64_t ino);
uint32_t mfs_store_node(const struct mfs_store *store); /* opts.node */
uint64_t mfs_store_epoch(struct mfs_store *store);
/* Fills in the node that serves each partition, nparts numbers; returns the table's epoch. */
uint64_t mfs_store_nodes(struct mfs_store *store, uint32_t *nodes);
uint32_t mfs_store_node_of(struct mfs_store *store, uint32_t part); /* one of them */

/* What calls have seen of a partition, those that no call waits for left out. */
struct mfs_store_part {
    uint32_t node;
    uint32_t waiting; /* calls under way … */
    int64_t silent;   /* … and for so many ns nothing has come back; 0: none is */
    uint64_t trips;   /* round trips, ever */
    int64_t ns;       /* all of them together */
    int64_t least;    /* the shortest of the last 10 to 20 s with any; 0: there was none yet */
    int64_t down;     /* for so many ns it could not be reached; 0: it can be */
    int64_t full;     /* so many ns ago it had no memory; 0: never */
    bool fenced;      /* it is being moved */
};
void mfs_store_parts(struct mfs_store *store, struct mfs_store_part *parts); /* nparts of them */

/* Has nothing come back for so many ns from a partition that is asked, or has it not answered in
 * time a moment ago, or could it not be reached for so long? Any thread, does not block. */
bool mfs_store_hangs(struct mfs_store *store, uint32_t part, int64_t ns);

/* Which partitions should not be asked for what nobody needs yet: those that could not be reached
 * last, from which others have waited for an answer for 100 ms, or that are being moved. Sets their
 * bits, of nparts; returns how many they are. */
size_t mfs_store_ailing(struct mfs_store *store, unsigned char *bits);

/* Has a partition that is at that node now had no memory for a call of this store within the last
 * so many ns? One has none only when its node has none. Any thread, does not block. */
bool mfs_store_node_full(struct mfs_store *store, uint32_t node, int64_t within);

/* Installs a newer table (takes it over in any case): idle connections to partitions whose address
 * or password changed are closed, later commands use the new ones. Returns 0, -ESTALE when the
 * epoch is not newer, -EINVAL when it is not a table of the same deployment shape. */
int mfs_store_set_table(struct mfs_store *store, struct mfs_table *table);

/* How many replicas have taken, or are about to take, a process' place, by the tables so far. The
 * new process may not know what the former one answered last unless the answer waited for it
 * (store/confirm.c): leases, for one. Any thread, does not block. */
uint64_t mfs_store_failovers(const struct mfs_store *store);

/* The partition's process, by the newest table: how often another one has taken its place so far.
 * Any thread, does not block. */
uint32_t mfs_store_era(struct mfs_store *store, uint32_t part);

/* The same, and how often there was no contact with cm for MFS_TRUST: other clients may have taken
 * this one for lost then, and changed things without telling it (decisions/0024). All that is known
 * under leases is to be forgotten when this has changed. To be read after mfs_store_in_contact:
 * then it has changed before that is true again. */
uint64_t mfs_store_resets(const struct mfs_store *store);

/* In how many ns mfs_store_in_contact(store, within) will be false if nothing is heard of cm until
 * then, 0 or less: it is; INT64_MAX: it never will be while the table is this one. */
int64_t mfs_store_contact_left(const struct mfs_store *store, int64_t within);

/* Who is to know of what may change at any time: a new table, or mfs_store_resets. `fn` is called
 * by the thread that brings it, with a lock held: it does not block, nor call the store. The struct
 * is the caller's, stays where it is until mfs_store_unwatch, after which fn is called no more, and
 * is to be zero but for fn and arg. */
struct mfs_store_watch {
    void (*fn)(void *arg);
    void *arg;
    bool on; /* this and what follows is the store's */
    struct mfs_store_watch *prev, *next;
};
void mfs_store_watch(struct mfs_store *store, struct mfs_store_watch *w);
void mfs_store_unwatch(struct mfs_store *store, struct mfs_store_watch *w); /* twice: nothing */

/* cm was there at mono time `at`, all tables of before have been set, and these nodes were lost
 * then or after it (cluster/trust.h). One thread. */
void mfs_store_set_contact(struct mfs_store *store, int64_t at, const struct mfs_lost_node *lost,
                           size_t n);
/* Does no client of that node (MFS_NO_NODE: never) rely on what it learned before mono time `at`,
 * nor will one again? What is known of that is about the last second at most. */
bool mfs_store_lost(struct mfs_store *store, uint32_t node, int64_t at);
/* Was the last contact with cm within so many ns, so that a failover would be known? Always, in a
 * deployment that has no replicas. Any thread, does not block. */
bool mfs_store_in_contact(const struct mfs_store *store, int64_t within);
/* Has each partition a replica in this deployment, or will it have one? Any thread. */
bool mfs_store_is_replicated(const struct mfs_store *store);

/* How long a writer that finds no memory should wait: opts.full_wait while the table says that
 * nodes can still come, otherwise 0. */
int64_t mfs_store_full_wait(struct mfs_store *store);

/* Has nothing listened where the partition should be, for ns? Its process is dead then, and what it
 * held lost; one that hangs, or that the network keeps from us, is not gone. */
bool mfs_store_gone(struct mfs_store *store, uint32_t part, int64_t ns);

struct mfs_arg {
    const void *p;
    size_t len;
};

/* One command. The caller sets the first group and keeps what it points to until the call returns.
 * Arguments of 16 KiB and more are sent from where they are, without a copy. */
struct mfs_cmd {
    uint32_t part;
    uint32_t argc;
    const struct mfs_arg *argv;
    void *into;      /* when set, a bulk string reply is received straight into here … */
    size_t into_cap; /* … and is -EMSGSIZE if longer than this (the rest is skipped) */
    /* Instead of `into`, when set: asked for as much memory when it is known how long the reply is,
     * and before any of it is taken; NULL: there is none. In the caller's thread. */
    void *(*room)(void *arg, size_t len);
    bool idempotent;   /* may be sent again when a connection broke before its reply came */
    bool full_at_once; /* -ENOSPC without opts.full_wait: the caller waits for memory itself */
    int64_t not_after; /* mono: not sent later than this, but -ECANCELED; 0: however late */
    bool in_era;       /* not sent to any other process than that of … */
    uint32_t only_era; /* … this era (mfs_store_era), but -ECANCELED. Of mfs_store_exec alone */
    /* Called in the caller's thread when the reply has come and rc is 0, while other commands of
     * the call are still waited for; it must ask no partition. A command that has to be sent again
     * is told again. Of mfs_store_exec alone. */
    void (*taken)(void *arg, const struct mfs_cmd *cmd);
    void *arg; /* of both */

    /* Results. rc is 0, or negative errno: what mfs_reply_errno says of an error reply, -EIO when
     * the partition can't be reached or the connection broke, -ETIMEDOUT as it says. */
    int rc;
    ssize_t into_len;        /* bytes received into `into`, -1 when the reply was nil */
    struct mfs_reply *reply; /* set when rc is 0 and not received into `into`; freed by fini */
    uint32_t era;            /* the store's: of the process that answered, … */
    uint32_t attempt;        /* … and in which attempt; one partition's share one connection */
};

/* What is still asked is the last of this client: from now on calls wait, all of them together, no
 * longer than opts.io_timeout since a partition last answered, nor than opts.table_wait for one
 * that nothing listens for. So the end of a client is bounded however much it has left to do. */
void mfs_store_ending(struct mfs_store *store);

/* Executes all commands; returns 0 when every rc is 0, otherwise the first rc that is not. Each
 * command's own result is set in any case, and mfs_cmds_fini must be called in any case. */
int mfs_store_exec(struct mfs_store *store, struct mfs_cmd *cmds, size_t n);
void mfs_cmds_fini(struct mfs_cmd *cmds, size_t n);

/* Starts the command without waiting for its reply, which is read and dropped later (an error reply
 * is logged): for updates whose reply does not matter. Commands given here for one partition keep
 * their order among each other. Returns 0 or -errno when it could not even be sent. The arguments
 * are copied. mfs_store_drain waits (bounded by ns) until all of them are answered. */
int mfs_store_post(struct mfs_store *store, const struct mfs_cmd *cmd);
int mfs_store_drain(struct mfs_store *store, int64_t ns);
/* So many of them have had no answer so far, or a refusal: what they would have done may not be
 * done. */
uint64_t mfs_store_posts_lost(struct mfs_store *store);

/* Some of the store's figures (store/metrics.h): calls that waited for replies, commands sent,
 * bytes out and in. */
struct mfs_store_stats {
    uint64_t round_trips, commands, bytes_out, bytes_in;
};
void mfs_store_stats(struct mfs_store *store, struct mfs_store_stats *stats);

/* For tests: called before each command is sent; may sleep, and returns 0, or a negative errno that
 * becomes the command's result, unsent. */
typedef int mfs_store_fault_fn(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc);
void mfs_store_set_fault(struct mfs_store *store, mfs_store_fault_fn *fn, void *arg);

#endif
