/* What a profile has added up; for the files of profiles. */
#ifndef MFS_TRACE_PROFILE_IMPL_H
#define MFS_TRACE_PROFILE_IMPL_H

#include "base/table.h"
#include "trace/profile.h"

#define MFS_PROFILE_KEYS 20000U /* of each table; what is beyond counts in the totals alone */

/* The time of requests, ms: that of the client, then of each phase. */
struct mfs_profile_times {
    double all, client, phase[MFS_PHASES];
};

/* Of one operation, process, path, directory, directory of failing look-ups, lock. */
struct mfs_profile_sum {
    char *key;
    uint32_t pid;
    uint64_t requests, errors, bytes, open;
    struct mfs_profile_times t;
    uint32_t holder_pid; /* of a lock: the last one */
    char holder[MFS_TRACE_PROGRAM];
    bool elsewhere;
    UT_hash_handle hh;
};

/* Round trips to a node, of the requests below the path, but for the shortest one. */
struct mfs_profile_node {
    uint32_t node;
    uint64_t trips;
    double ms;
    double least_ms;            /* of all requests; 0: there were none */
    struct mfs_trace_node seen; /* by the whole client: figures of the time, states of its end */
    bool has_seen;
    uint64_t hanging;   /* requests that wait for one of its partitions … */
    uint32_t partition; /* … this one … */
    double hanging_ms;  /* … since so long */
    uint64_t full;      /* requests that found no memory */
};

struct mfs_profile {
    char *below;
    uint64_t lost;
    struct mfs_profile_sum all;
    struct mfs_profile_sum *op, *process, *path, *dir, *missing, *lock;
    struct mfs_profile_sum none; /* look-ups that found nothing */
    uint64_t no_space;           /* requests that ended with ENOSPC */
    uint32_t nnodes;
    struct mfs_profile_node *node;
};

#endif
