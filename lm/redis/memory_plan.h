/* How a node's memory is divided among its redis processes. Pure and deterministic.
 *
 * Redis limits each process for itself, while what the operator promised is a limit per node. Data
 * spread evenly over partitions only in the mean, so fixed equal limits would let one partition
 * refuse writes while its node still has room. The Local Manager therefore moves allowance to where
 * it is needed: each process may use what it uses now plus an equal part of what is free.
 *
 * Invariant: the sum of all limits never exceeds the usable memory, also between two changes. */
#ifndef MFS_LM_REDIS_MEMORY_PLAN_H
#define MFS_LM_REDIS_MEMORY_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mfs_memory_part {
    uint64_t used; /* bytes, as redis counts them against maxmemory */
    uint64_t max;  /* bytes it is allowed now; 0: it does not run yet */
    uint64_t idle; /* bytes that it has freed and kept: it alone can use them without taking more */
    bool fixed;    /* its limit can't be changed now (it does not answer) and stays counted */
};

/* What was seen of one process, in bytes. */
struct mfs_memory_seen {
    uint64_t used;        /* as redis counts */
    uint64_t not_counted; /* of that: what its limit leaves out, which are buffers of replicas */
    uint64_t anon;        /* resident and its own; 0: not known */
    uint64_t active;      /* the allocator's pages in use, and all that it keeps */
    uint64_t resident;
    uint64_t others; /* what it takes elsewhere: pages that a fork copied, its journal */
};

/* What it takes of the node: `used` as its limit counts it, and `idle`, as above. Returns what it
 * takes beyond these two, for which no other process has room and which its limit does not cover:
 * tables, fragmentation, buffers of replicas, copies. At least MFS_CAPACITY_PROCESS, in steps of
 * 256 KiB. */
uint64_t mfs_memory_reckon(const struct mfs_memory_seen *seen, uint64_t *used, uint64_t *idle);

/* What the limits of all may add up to on a node with that limit (cm start --memory), when its
 * processes take `beyond` altogether: never less than an eighth of the limit, which a node that is
 * too small for its processes exceeds. */
uint64_t mfs_memory_usable(uint64_t limit, uint64_t beyond);

/* Fills want[] (bytes, each ≥ 1, as 0 would mean "no limit"). All get the same headroom above what
 * they have, used or idle, which is the largest that all can have. When that does not fit,
 * idle memory counts only as far as there is room; when not even what is used fits, each gets a
 * share of `usable` in proportion to what it uses: that refuses writes and lets deletions through.
 */
void mfs_memory_plan(const struct mfs_memory_part *parts, size_t n, uint64_t usable,
                     uint64_t *want);

/* The limit that parts[i] may be given right now on its way to `want`, all others being as they
 * are: shrinking is always allowed, growing as far as the sum permits. So shrink all first. */
uint64_t mfs_memory_grant(const struct mfs_memory_part *parts, size_t n, uint64_t usable, size_t i,
                          uint64_t want);

/* Is the plan worth carrying out? Not while every process has at least half of the headroom that
 * the plan would give it, and enough for one `write` (bytes) if the plan gives it that, and the
 * limits fit into the usable memory. */
bool mfs_memory_worthwhile(const struct mfs_memory_part *parts, size_t n, uint64_t usable,
                           const uint64_t *want, uint64_t write);

/* Is memory so short that what is idle should be given back at once, for others to use? */
bool mfs_memory_short(const struct mfs_memory_part *parts, size_t n, uint64_t usable);

/* Should usage be looked at again soon, while there is memory to move? True when a process has less
 * than a quarter of its fair headroom left, or less than one `write` takes though that would be
 * fair; and when usage is changing (`moved`: bytes since the
 * last look, up and down) and that headroom is less than one may take in until the next look. */
bool mfs_memory_urgent(const struct mfs_memory_part *parts, size_t n, uint64_t usable,
                       uint64_t write, uint64_t moved);

/* What the allocator of one process keeps although its data are gone. Zero it at the start. */
struct mfs_memory_rest {
    uint64_t used;   /* at the last look */
    uint64_t normal; /* resident above used when all is well, or as far as a purge gets */
    bool much;       /* it was clearly more at the last look already */
    bool purged;     /* the last look led to a purge */
};

/* Is it time to make the process give memory back to the system? To be asked once per look; yes
 * when much more is resident than used, at two looks in a row, while usage does not grow (memory
 * about to be used again is better kept), and more than what the last purge could not move. */
bool mfs_memory_purge_due(struct mfs_memory_rest *rest, uint64_t used, uint64_t rss);

#endif
