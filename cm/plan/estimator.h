/* What the nodes' links carry, from the traffic that the application makes anyway. Pure: what nodes
 * report goes in, capacities come out; time is the caller's. docs/design/network.md, "Estimator",
 * has the reasons for every rule and number.
 *
 * The model is the hose: a node's link carries `capacity` bytes/s in and as much out, in total, and
 * nothing else is in the way. After Uta et al., "MemEFS: A network-aware elastic in-memory runtime
 * distributed file system", FGCS 82 (2018), section 3.3: a node whose rate has stopped rising in a
 * period of high traffic is at its limit. There the others' rates rise meanwhile; where all nodes
 * wait for the slowest they do not, so here it decides which node waits for which: a pair of nodes
 * that is busy all the time waits for the sender's side or for the receiver's; a side that serves
 * another pair faster, and not all the time, is not what is waited for. Where both or neither
 * remain, nothing is concluded.
 *
 * Not for use by several threads at once. */
#ifndef MFS_CM_PLAN_ESTIMATOR_H
#define MFS_CM_PLAN_ESTIMATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/messages.h"

struct mfs_estimator;

/* NULL: no memory. */
struct mfs_estimator *mfs_estimator_create(void);
void mfs_estimator_destroy(struct mfs_estimator *e);

/* A node that is to be watched. Those that are known already stay as they are. Nothing else here
 * takes memory. 0 or -ENOMEM. */
int mfs_estimator_add(struct mfs_estimator *e, uint32_t id);
/* It has gone, and what was known of it is forgotten. */
void mfs_estimator_remove(struct mfs_estimator *e, uint32_t id);

/* What an earlier estimator or a probe has found, bytes/s: stands until traffic shows otherwise. */
void mfs_estimator_recall(struct mfs_estimator *e, uint32_t id, double capacity);

/* A node's report of the last second or so. Bytes/s of its interface, in and out, and what it sent
 * to which node; nodes that are not watched are ignored. `now`: seconds, monotonic. */
void mfs_estimator_report(struct mfs_estimator *e, double now, uint32_t id, double in, double out,
                          const struct mfs_report_peer *peer, uint32_t npeers);

/* Draws the conclusions. To be called once a second. */
void mfs_estimator_look(struct mfs_estimator *e, double now);

/* What traffic has shown: bytes/s that the node's link carries each way; 0: nothing yet, or no
 * longer. */
double mfs_estimator_capacity(const struct mfs_estimator *e, uint32_t id);

#endif
