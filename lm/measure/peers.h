/* Which node waits for which: what this node's connections to other nodes' partitions, and theirs
 * to its own, carry to each of these nodes, and how much of the time the network towards it was
 * waited for.
 *
 * A rate alone does not tell whether a link is full or no program wants more of it; TCP knows. A
 * connection *waits for the network* at an instant when more is in its queue than the two segments
 * that a receiver may leave unacknowledged for a while, when the receiver has room, and when one of
 * these is so:
 *
 *  - a part has not been sent at all, as congestion control, or the link's own queue, holds it
 * back;
 *  - round trips take more than twice as long as the shortest one, and 0.2 ms: it stands in queues;
 *  - it was lost, and is to be sent again.
 *
 * So a chatty connection on an idle link does not wait, though TCP has something of it under way
 * nearly all the time: its messages are small, or they are there at once. Neither does one whose
 * receiver is slow, as its window is full.
 *
 * Pure: the caller brings figures and time. Every second, say, a look at all sockets
 * (mfs_peers_look_begin to _end, which gives rates); between looks, 20 times a second while there
 * is traffic, samples of those that carry some (mfs_peers_sample). One thread at a time. */
#ifndef MFS_LM_MEASURE_PEERS_H
#define MFS_LM_MEASURE_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/table.h"
#include "host/sockdiag.h"
#include "proto/messages.h"

#define MFS_PEERS_SOCKETS_MAX 4096 /* of ours; more are not looked at */
#define MFS_PEERS_ASKED_MAX   8    /* sockets of one node that one sample asks for */

struct mfs_peers;

struct mfs_peers *mfs_peers_create(void);    /* NULL: ENOMEM */
void mfs_peers_destroy(struct mfs_peers *p); /* takes NULL */

/* Whose connections count: those between node `self` and another one of the table, at the ports of
 * partitions. Nodes for which `near` (may be NULL) is true are left out: nothing that one could
 * measure lies between. 0, or -ENOMEM, and nothing has changed. */
int mfs_peers_know(struct mfs_peers *p, const struct mfs_table *t, uint32_t self,
                   bool (*near)(const char *address));

bool mfs_peers_any(const struct mfs_peers *p);                /* there is another node */
bool mfs_peers_family(const struct mfs_peers *p, int family); /* … with such an address */

/* A look: begin, see each socket that there is, end. What mfs_peers_list tells changes at the end;
 * `now` is mfs_clock_mono. A connection counts from the second look that sees it. */
void mfs_peers_look_begin(struct mfs_peers *p, int64_t now);
void mfs_peers_see(struct mfs_peers *p, const struct mfs_sock *s);
void mfs_peers_look_end(struct mfs_peers *p);

/* Some connection carries enough that samples are worth their while. */
bool mfs_peers_active(const struct mfs_peers *p);

/* Asks for a few sockets, those first that waited last time: 0 and *now, or it is gone. */
void mfs_peers_sample(struct mfs_peers *p,
                      int (*ask)(void *arg, const struct mfs_sock *which, struct mfs_sock *now),
                      void *arg);

/* Of the time between the last two looks: the nodes to which there are connections. Returns their
 * number; out NULL: only the number. */
size_t mfs_peers_list(const struct mfs_peers *p, struct mfs_report_peer *out);

#endif
