/* The redis processes of a node together: which run, what they use, and the division of the node's
 * memory among them (memory_plan.h).
 *
 * Belongs to the worker thread: every function blocks, bounded, and one thread at a time may call.
 * Destroying the list ends no process. */
#ifndef MFS_LM_REDIS_INSTANCES_H
#define MFS_LM_REDIS_INSTANCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "lm/redis/redis_proc.h"

struct mfs_instances;

/* All strings are copied. */
struct mfs_instances_opts {
    const char *dir;      /* absolute */
    const char *dump_dir; /* absolute */
    const char *address;
    const char *deployment;
    uint32_t nparts, stripe_size;
    uint64_t memory; /* the node's limit, bytes */
};

int mfs_instances_create(struct mfs_instances **instances,
                         const struct mfs_instances_opts *opts); /* 0, -errno */
void mfs_instances_destroy(struct mfs_instances *instances);

/* Takes over a process that runs already. 0 or -ENOMEM. */
int mfs_instances_adopt(struct mfs_instances *instances, const struct mfs_redis *r);

/* Sets the node's limit; the next measuring acts on it. */
void mfs_instances_set_memory(struct mfs_instances *instances, uint64_t bytes);

/* Starts processes for those of r[] (part, passwords, format, incoming, expected and image are set)
 * that do not run yet, after making room for them in the division of memory. All or none: 0, or a
 * negative errno with the reason; -EEXIST when a partition runs with another password, -ENOSPC when
 * what is expected does not fit beside what there is. */
int mfs_instances_start(struct mfs_instances *instances, const struct mfs_redis *r, size_t n,
                        struct mfs_err *err);

/* Ends the processes of these partitions, losing their content; unknown ones count as ended. 0 or
 * -ETIMEDOUT. */
int mfs_instances_stop(struct mfs_instances *instances, const uint32_t *parts, size_t n);
int mfs_instances_stop_all(struct mfs_instances *instances);

/* The copy is whole, and goes on following: from now on it counts with what it uses, no more with
 * what it was expected to take. */
void mfs_instances_arrived(struct mfs_instances *instances, uint32_t part);

/* The partition has arrived whole and serves: from now on it counts with what it uses. */
void mfs_instances_settle(struct mfs_instances *instances, uint32_t part);

/* Revives a member whose process has died: mfs_redis_revive. 0 and *r, or a negative errno; it is a
 * member still. */
int mfs_instances_revive(struct mfs_instances *f, uint32_t part, struct mfs_redis *r,
                         struct mfs_revived *how, struct mfs_err *err);

/* Drops a process that ended by itself; its memory is free for the others. */
void mfs_instances_forget(struct mfs_instances *instances, uint32_t part);

/* Copies what runs for the partition to *r: 0, or -ENOENT. */
int mfs_instances_find(const struct mfs_instances *instances, uint32_t part, struct mfs_redis *r);

/* A copy of what runs, for the caller to free; *n is their number. NULL when none or ENOMEM. */
struct mfs_redis *mfs_instances_list(const struct mfs_instances *instances, size_t *n);

struct mfs_instances_part {
    uint32_t part;
    bool incoming;       /* a copy that is on its way, or a replica */
    bool silent;         /* did not answer; the rest is from when it did … */
    bool told;           /* … if it ever has */
    uint64_t used, keys; /* bytes as redis counts them */
    uint64_t limit;      /* bytes, of `used` */
    /* Since its process began: bytes, commands executed, answered with an error, and of these as
     * memory is full. */
    uint64_t net_in, net_out, commands, errors, out_of_memory;
    /* Not of an incoming one: inodes with their home there, stripes that were ever lost there. */
    uint64_t inodes, losses;
};

struct mfs_instances_sample {
    uint64_t capacity;                /* bytes the node's processes may use together */
    uint64_t used;                    /* bytes, as redis counts */
    uint64_t rss;                     /* bytes resident */
    uint64_t net_in, net_out;         /* bytes, only ever growing, as are … */
    uint64_t commands, out_of_memory; /* … what was executed, and refused as memory is full */
    bool urgent;                      /* look again soon: one is near its limit */
    size_t n;                         /* processes, copies among them */
    struct mfs_instances_part
        *part; /* freed by the caller; NULL when there is none, or no memory */
};

/* Asks every process, all at once, moves memory to where it is needed, and has memory that
 * deletions left behind given back to the system. A process that does not answer within a second
 * counts as it was. */
void mfs_instances_measure(struct mfs_instances *instances, struct mfs_instances_sample *sample);

#endif
