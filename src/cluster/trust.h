/* How long a client relies on what it has learned under leases, in a deployment with replicas
 * (docs/decisions/0022). A replica that takes over may not know of the last leases that its
 * predecessor granted, so all clients are told before it serves; one that can't be told must have
 * stopped relying on them by itself. It does so by its own clock, from the last moment when cm was
 * certainly there. */
#ifndef MFS_CLUSTER_TRUST_H
#define MFS_CLUSTER_TRUST_H

#include "base/clock.h"

#define MFS_TRUST_BEAT (250 * MFS_MSEC)  /* from one question for cm to the next */
#define MFS_TRUST      (1000 * MFS_MSEC) /* without an answer, nothing is relied on any more … */
#define MFS_TRUST_KEPT (750 * MFS_MSEC) /* … and nothing left to the kernel, which is told late */
#define MFS_TRUST_OVER (1200 * MFS_MSEC) /* by cm's clock; clocks may differ by a tenth */

#endif
