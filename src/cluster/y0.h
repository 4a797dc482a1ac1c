/* Layer 2 of placement, the Y0 rule: how many partitions each node gets.
 *
 * Y0: Godfrey and Stoica, "Heterogeneity and load balance in distributed hash tables", INFOCOM
 * 2005, as used by MemEFS: capacity c_v = n·cap(v)/Σcap(u), P_v = c_v·β·log2 n (log2 1 taken as 1),
 * integers by largest remainder, at least 1 per node (then the others divide the rest by the same
 * rule). Pure. */
#ifndef MFS_CLUSTER_Y0_H
#define MFS_CLUSTER_Y0_H

#include <stddef.h>
#include <stdint.h>

#define MFS_Y0_BETA 4.0

/* The number of partitions of a new deployment: round(n·β·log2 n), at least max(n, least). `least`
 * is what --partitions or --max-nodes ask for, 0 for none. */
uint32_t mfs_y0_partitions(size_t nodes, double beta, uint32_t least);

/* Divides `parts` partitions over n nodes in proportion to cap[] (all > 0): counts[] sum to parts,
 * each ≥ 1. Ties of the remainders go to the lower index. Returns 0, or -EINVAL when n is 0 or
 * exceeds parts, or a cap is not positive and finite. O(n log n). */
int mfs_y0_counts(const double *cap, size_t n, uint32_t parts, uint32_t *counts);

/* Likewise, but of nodes whose remainders tie (to 10^-6) those get one more for which it is worth
 * most: `worth` is asked once for each node, with the whole part of what is due to it. */
int mfs_y0_counts_by(const double *cap, size_t n, uint32_t parts,
                     double (*worth)(void *arg, size_t node, uint32_t whole), void *arg,
                     uint32_t *counts);

/* share(v) = (P_v / P) / (c_v / n), ideal 1. */
double mfs_y0_share(uint32_t count, uint32_t parts, double cap, double cap_sum);

#endif
