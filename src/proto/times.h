/* Times that cm and lm share: what the one allows for its work, and the other waits for longer.
 * Whoever depends on such an order asserts it. */
#ifndef MFS_PROTO_TIMES_H
#define MFS_PROTO_TIMES_H

#include "base/clock.h"

#define MFS_REPORT_EACH       (1 * MFS_SEC)  /* lm's reports to cm, unless configured otherwise */
#define MFS_CLIENT_READY_TIME (30 * MFS_SEC) /* lm: until a new client has mounted */
#define MFS_CLIENT_ACK_TIME   (5 * MFS_SEC)  /* lm: until a client has acknowledged a table */
#define MFS_CLIENT_END_TIME   (5 * MFS_SEC)  /* lm, cm: a client may take it to end; then SIGKILL */
#define MFS_METRICS_EACH      (2 * MFS_SEC)  /* clients' figures to lm, when they have changed */
#define MFS_TOLD_ONCE         (1 * MFS_SEC) /* signals of one end: Slurm's, and srun's that had it */
#define MFS_CONSENT_TIME      (5 * MFS_SEC) /* lm: until a replica consents, or has all */

#endif
