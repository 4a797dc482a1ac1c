/* What part of everything each node should hold when links are what limits. Pure.
 *
 * A node's link carries so much each way, to and from all others together (the hose model). Where
 * every node works as much as it holds, what a node of share s works on is its own for a part of s
 * and does not cross its link; of what the others do it holds s. So s (1 − s) of all bytes cross
 * its link, either way. All links are busy to the end when that is in proportion to their rates,
 * not the shares themselves: fast nodes hold a little more than their part of the bandwidth. */
#ifndef MFS_CLUSTER_HOSE_H
#define MFS_CLUSTER_HOSE_H

#include <stddef.h>

/* share[], > 0 and 1 in all, with share · (1 − share) as rate[]. Where the fastest has nearly half
 * of all bandwidth there are none such: then it gets a half, or its part of the bandwidth if that
 * is more, and the rule is for the others. Two nodes: in proportion. 0, or -EINVAL when n is 0 or a
 * rate is not positive and finite. */
int mfs_hose_shares(const double *rate, size_t n, double *share);

#endif
