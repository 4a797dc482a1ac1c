/* Inside the instances: which ones there are is instances.c's business, what memory they have is
 * instances_memory.c's, which the former calls. One thread at a time, see lm/redis/instances.h. */
#ifndef MFS_LM_REDIS_INSTANCES_IMPL_H
#define MFS_LM_REDIS_INSTANCES_IMPL_H

#include "lm/redis/instances.h"
#include "lm/redis/memory_plan.h"

struct mfs_admin;

#define MFS_INSTANCE_EMPTY (1ULL << 20) /* bytes that a new process uses, amply */

struct mfs_instance {
    struct mfs_redis redis;
    struct mfs_admin *admin;  /* NULL: not connected */
    uint64_t used, rss, keys; /* used: as its limit counts it */
    uint64_t inodes, losses;  /* as of the last regular look that it could answer */
    uint64_t idle, beyond;    /* see memory_plan.h */
    /* its counters at the last look */
    uint64_t net_in, net_out, commands, errors, out_of_memory;
    struct mfs_memory_rest rest;
    bool counted;    /* its counters have been read once: those of an adopted one are of before */
    bool asked;      /* at this look, and has not answered yet */
    bool growing;    /* used more at the last look than at the one before */
    bool silent;     /* did not answer at the last look */
    bool told;       /* it has answered, to this process */
    unsigned missed; /* looks since it answered */
};

struct mfs_instances {
    struct mfs_redis_node node; /* its strings are ours */
    uint64_t memory;            /* the node's limit */
    uint64_t usable;            /* of that, for the limits of all together, as of the last look */
    bool tight;        /* so little was free then that no instance should keep what is idle */
    uint64_t moved;    /* bytes that usage changed by since the last look, up and down */
    int64_t looked_at; /* the last regular look; those in between are for the limits alone */
    bool regular;      /* this is one */
    unsigned looks;    /* so far */
    uint64_t net_in, net_out, commands, out_of_memory;
    struct mfs_instance *member;
    size_t n;
};

/* What the limits may add up to (f->usable), with room for `fresh` more processes. */
void mfs_instances_reckon(struct mfs_instances *f, size_t fresh);

/* Looks at those that run and shrinks them so that `fresh` more fit, and tells what these may have
 * (maxmemory). 0, -ENOSPC or -ENOMEM with the reason. Blocks. */
int mfs_instances_make_room(struct mfs_instances *f, struct mfs_redis *fresh, size_t n,
                            struct mfs_err *err);

#endif
