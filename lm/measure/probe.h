/* What does this node's link carry? One node at a time is measured: it listens, some others
 * connect, twice each. Over the first connections they send to it as fast as they can for a moment,
 * then it sends over the second ones. By the hose model what the node receives, and sends, in total
 * is its link's capacity, as long as the others together have more. Not both ways at once, as each
 * way's acknowledgements would have to wait in the other's queue.
 *
 * What counts is what the node's interface carried, headers and other traffic included: so do the
 * meters.
 *
 * The ends prove to each other that they hold a password made for this one measurement
 * (net/auth.h), before anything else is read; what is sent then are zeros. It never lasts longer
 * than asked for and a few seconds of patience, whatever the others do.
 *
 * mfs_probe_measure and mfs_probe_meet block: they are for a thread of their own. */
#ifndef MFS_LM_MEASURE_PROBE_H
#define MFS_LM_MEASURE_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/auth.h"

#define MFS_PROBE_PEERS_MAX 16
#define MFS_PROBE_GATHER_NS (1500 * 1000000LL) /* for all to connect; a fifth when half have */

struct mfs_probe_plan {
    struct mfs_secret secret; /* of this measurement */
    uint32_t peers;           /* that will connect */
    int64_t time;      /* ns each way; three times as much on links so slow that little goes */
    uint64_t bytes;    /* it ends earlier when so many have gone */
    const char *iface; /* the node's; "": it counts what its connections carry */
};

struct mfs_probe_rates {
    double in, out; /* bytes/s */
};

/* A socket that listens at an address (numeric) and any port; or a negative errno. */
int mfs_probe_listen(const char *address, uint16_t *port);

/* Measures, and closes the listener. 0, -ETIMEDOUT when no helper came, or another negative errno
 * with the reason. */
int mfs_probe_measure(int listener, const struct mfs_probe_plan *plan, struct mfs_probe_rates *r,
                      struct mfs_err *err);

/* The others: connects, sends and takes until the node that is measured hangs up. 0 or a negative
 * errno with the reason. */
int mfs_probe_meet(const char *host, uint16_t port, const struct mfs_probe_plan *plan,
                   struct mfs_err *err);

/* Bytes that have gone by some time. */
struct mfs_probe_count {
    int64_t when; /* ns */
    uint64_t bytes;
};

/* Bytes/s over the later half of the time: by then TCP has found its pace, and what a token bucket
 * had saved up is used. Pure; n counts in order of time; 0 for less than three. */
double mfs_probe_rate(const struct mfs_probe_count *c, size_t n);

#endif
