/* How many bytes of content a node of a given limit takes, and what everything else on it may take.
 * Pure; the one place with these numbers, for lm (which divides the memory), for cm (which plans
 * with it) and for the client. decisions/0019 has the reasons and what was measured.
 *
 *   limit = what the operator promised (cm start --memory)
 *         = the programs + the client's share + the slack + what the redis processes may take
 *
 * Redis limits what it has given out (`used`). The Local Manager takes what a process has resident
 * beyond that (fragmentation, tables of the allocator, a fork's copies, a replica's buffers) off
 * what all may use, each time it looks (lm/redis/memory_plan.h); before it has looked, and for
 * planning, MFS_CAPACITY_PROCESS stands for it. */
#ifndef MFS_CLUSTER_CAPACITY_H
#define MFS_CLUSTER_CAPACITY_H

#include <stddef.h>
#include <stdint.h>

#define MFS_CAPACITY_MIB (1ULL << 20)

/* Of an empty redis process, beyond what it counts as used; bytes. */
#define MFS_CAPACITY_PROCESS (5 * MFS_CAPACITY_MIB / 2)

/* Of a partition without data, as used; bytes: 797 KB, measured with redis 7.0 on x86-64. */
#define MFS_CAPACITY_EMPTY (3 * MFS_CAPACITY_MIB / 4)

/* Stripes of room that a partition should have to take what is being written: it refuses with about
 * two, and its Local Manager may leave it half of its part of what is free. */
#define MFS_CAPACITY_NEXT_WRITES 4

/* The client's share of a node's limit: an eighth, but at least what it can work with, and no more
 * than it has a use for. Bytes, for `memefs mount -o memory=`. */
#define MFS_CAPACITY_CLIENT_LEAST (24 * MFS_CAPACITY_MIB)
#define MFS_CAPACITY_CLIENT_MOST  (512 * MFS_CAPACITY_MIB)
uint64_t mfs_capacity_client(uint64_t limit);

/* What the redis processes of a node may have resident together. Never less than a quarter of the
 * limit: a smaller node does not keep to it (mfs_capacity_least). */
uint64_t mfs_capacity_partitions(uint64_t limit);

/* What n redis processes may count as used together, as far as can be told before they run: what a
 * node's CAPACITY in `cm status` is at the start. Never less than an eighth of the limit. */
uint64_t mfs_capacity_used(uint64_t limit, uint32_t n);

/* How much of what a node's processes may use (`usable` bytes) cm fills where partitions have
 * replicas: a sixteenth stays free for the node's own to grow, as redis keeps no replica within its
 * limit (decisions/0017). It holds where replicas are made, and for plans. */
uint64_t mfs_capacity_replicated(uint64_t usable);

/* The least limit with which a node of n partitions keeps to it and holds something. */
uint64_t mfs_capacity_least(uint32_t n);

/* The least limit with which n redis processes of partitions without data can start; bytes, a whole
 * number of MiB. */
uint64_t mfs_capacity_start(uint32_t n);

/* How a client divides what it may take (`memory`, at least MFS_CAPACITY_CLIENT_LEAST, which
 * anything smaller counts as) among all that it keeps. Windows that are given (not 0) stay as they
 * are, and the rest gets by with what is left, 4 MiB at least. */
struct mfs_capacity_shares {
    size_t write_window,
        read_window; /* bytes: data/writeback/writeback.h, data/readahead/readahead.h */
    size_t contents; /* bytes of small files: meta/cache/contents.h */
    size_t heads;    /* bytes of small files that came with an open: vfs/content/head.h */
    size_t held;     /* bytes of requests that wait for a worker */
    uint32_t kept;   /* bytes that a worker keeps of its request buffer */
    uint32_t files;  /* attributes that are kept under leases */
    uint32_t names;  /* names that are known of directories filled here */
};

/* Bytes of one request of the kernel, with however little memory: an append of so many is never
 * torn (docs/design/consistency.md). */
#define MFS_CAPACITY_REQUEST (1U << 20)

void mfs_capacity_divide(uint64_t memory, uint32_t workers, struct mfs_capacity_shares *shares);

#endif
