/* Long histories of a deployment on paper: nodes join, leave, crash and change their capacity at
 * random, and each time the planner plans. For `cm simulate` and the tests; pure. */
#ifndef MFS_CM_PLAN_SIMULATE_H
#define MFS_CM_PLAN_SIMULATE_H

#include <stdint.h>

#include "base/err.h"

struct mfs_simulate_opts {
    uint32_t nodes;     /* at the start, ≥ 1 */
    uint32_t max_nodes; /* ≥ nodes; also the least number of partitions */
    uint32_t steps;     /* changes */
    double beta;
    double spread; /* capacities differ up to that factor; 1: all equal */
    double fill;   /* data, of the memory at the start */
    uint64_t seed;
};

struct mfs_simulate_result {
    uint32_t partitions;
    uint32_t changes, refused; /* refused: the data would not have fitted; then nothing changed */
    uint32_t nodes_least, nodes_most;
    double share_worst;  /* largest (partitions / due) of a node after any change, of those due 1 or
                            more */
    double share_bound;  /* what the rule promises for that: (due + 1) / due of the least due */
    double bytes_worst;  /* likewise (bytes held / bytes due) */
    double moved;        /* bytes moved / what moves at least if partitions could be cut */
    double slowest_ms;   /* of a plan */
    uint32_t violations; /* of a node's memory, its bound or its least of 1: 0, or the planner is
                            wrong */
};

/* 0, -EINVAL or -ENOMEM. */
int mfs_simulate_run(const struct mfs_simulate_opts *o, struct mfs_simulate_result *r,
                     struct mfs_err *err);

#endif
