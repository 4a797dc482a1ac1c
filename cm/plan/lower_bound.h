/* The least time that a change of nodes can take: what every plan, however clever, needs to move
 * over the nodes' links. Figures to measure a change by.
 *
 * After: Cheriere, Dorier, Antoniu, "How fast can one resize a distributed file system?", JPDC
 * 2020, for data that are not replicated, stand in memory and are evenly spread before and after.
 * Links are full-duplex, `rate` bytes/s each way. All times in seconds. Pure. */
#ifndef MFS_CM_PLAN_LOWER_BOUND_H
#define MFS_CM_PLAN_LOWER_BOUND_H

#include <stddef.h>
#include <stdint.h>

#include "proto/messages.h"

/* n nodes hold `node_bytes` each and x come: (D/S)·max(n, x)/(n + x). The x take in x/(n + x) of
 * all data over x links, from n links. 0 when nothing is to be moved, INFINITY when rate is not >
 * 0. */
double mfs_lower_bound_grow(double node_bytes, double rate, uint32_t n, uint32_t x);

/* n nodes hold `node_bytes` each and x < n go: (D/S)·max(1, x/(n − x)). INFINITY when none stays.
 */
double mfs_lower_bound_shrink(double node_bytes, double rate, uint32_t n, uint32_t x);

/* The same thought for given moves between unequal nodes: the busiest direction of any link. Moves
 * from nowhere cost nothing at their source. 0, or INFINITY when rate is not > 0; negative:
 * -ENOMEM. O(moves log moves). */
double mfs_lower_bound_moves(const struct mfs_scale_move *moves, size_t n, double rate);

/* Likewise, over links that differ: `rate` tells a node's, bytes/s each way. */
double mfs_lower_bound_links(const struct mfs_scale_move *moves, size_t n,
                             double (*rate)(const void *arg, uint32_t node), const void *arg);

#endif
