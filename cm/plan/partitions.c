#include "cm/plan/partitions.h"

#include "cluster/capacity.h"
#include "cluster/placement.h"
#include "cluster/y0.h"

#define GROWS 8  /* fold */
#define LEAST 16 /* nodes, that a small deployment may grow to */
#define SHARE                                                                                      \
    10 /* so large a part of a node's memory may its partitions take beside their data             \
        */

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t nodes_then(const struct mfs_partitions_for *d)
{
    if (d->max_nodes || d->one_machine)
        return most(d->max_nodes, d->nodes);
    return most(LEAST, (uint64_t)GROWS * d->nodes);
}

uint32_t mfs_partitions_default(const struct mfs_partitions_for *d)
{
    uint64_t wanted = MFS_PARTITIONS_EACH * nodes_then(d),
             kept = (uint64_t)MFS_CAPACITY_NEXT_WRITES * d->stripe_size,
             fit = d->nodes * (d->memory / SHARE / kept);

    if (wanted > fit)
        wanted = d->max_nodes ? fit / d->max_nodes * d->max_nodes : fit;
    if (wanted > MFS_PARTITIONS_MAX)
        wanted = MFS_PARTITIONS_MAX;
    return mfs_y0_partitions(d->nodes, MFS_Y0_BETA, (uint32_t)most(wanted, d->max_nodes));
}
