/* How long a client relies on what it has learned under leases, in a deployment with replicas
 * (decisions/0022). A replica that takes over may not know of the last leases that its
 * predecessor granted, so all clients are told before it serves; one that can't be told must have
 * stopped relying on them by itself. It does so by its own clock, from the last moment when cm was
 * certainly there. And it does for long when cm says that its node is lost: then others need not
 * wait until it has answered what they tell it (decisions/0024). */
#ifndef MFS_CLUSTER_TRUST_H
#define MFS_CLUSTER_TRUST_H

#include <assert.h>
#include <stdint.h>

#include "base/clock.h"

#define MFS_TRUST_HEARTBEAT (250 * MFS_MSEC) /* from one question for cm to the next */
#define MFS_TRUST           (1000 * MFS_MSEC) /* without an answer, nothing is relied on any more … */
#define MFS_TRUST_KEPT      (750 * MFS_MSEC) /* … and nothing left to the kernel, which is told late */
#define MFS_TRUST_OVER      (1200 * MFS_MSEC) /* by cm's clock; clocks may differ by a tenth */
#define MFS_TRUST_LOST      (2000 * MFS_MSEC) /* a node that cm has not heard of for so long is lost */

static_assert(2 * MFS_TRUST_HEARTBEAT < MFS_TRUST_KEPT, "one answer may be lost");
static_assert(MFS_TRUST_KEPT < MFS_TRUST, "the kernel is told late");
static_assert(MFS_TRUST / 10 * 11 < MFS_TRUST_OVER, "a client's clock may be slower by a tenth");
static_assert(MFS_TRUST_OVER < MFS_TRUST_LOST, "a lost node's clients rely on nothing any more");

/* A node that was lost when cm answered a `beat`. After it said so cm answers none of that node's
 * for MFS_TRUST_OVER: for so long no client there relies on anything, and before it does again it
 * forgets all that it knew (mfs_store_resets). */
struct mfs_lost_node {
    uint32_t node; /* id */
};

#endif
