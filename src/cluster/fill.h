/* Shares in proportion to one thing, limited by another: bandwidth rules, memory limits. Pure.
 *
 * Water-filling: every node takes in proportion to its rate until its room is used up; what it
 * can't take goes to the others, again in proportion to their rates. */
#ifndef MFS_CLUSTER_FILL_H
#define MFS_CLUSTER_FILL_H

#include <stddef.h>

/* Divides `amount` (bytes, ≥ 0) over n nodes: share[] are the parts of 1 that each takes, > 0, with
 * share[i] · amount ≤ room[i]. Of nodes that are not at their limit shares are as rate[]. When
 * everything together has no more room than `amount`, shares are as room[]. Returns 0, or -EINVAL
 * when n is 0, a rate is not positive, a room negative, or anything is not finite. At most n passes
 * over the nodes, a few in practice. */
int mfs_fill_shares(const double *rate, const double *room, size_t n, double amount, double *share);

#endif
