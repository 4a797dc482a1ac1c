/* The term of a partition that has a replica, and the thread that renews it.
 *
 * A process that serves clients must not go on with that once its replica may have been put in its
 * place. So its right to serve is a term of MFS_TERM_NS, which only the replica's process extends:
 * the thread asks it ("mfs_term_consent") several times per term. The term counts from before the
 * question, by a clock that does not stand still while the machine sleeps, so whatever is slow, the
 * process that was asked knows how long it must wait: MFS_TERM_NS after its last consent.
 *
 * Everything may be called by redis' thread; nothing blocks. */
#ifndef MFS_PARTITION_REPLICA_CONSENT_H
#define MFS_PARTITION_REPLICA_CONSENT_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define MFS_TERM_MS       1200
#define MFS_TERM_NS       (MFS_TERM_MS * 1000000LL)
#define MFS_TERM_ROUND_NS (MFS_TERM_NS / 6) /* from one question to the next */

static_assert(3 * MFS_TERM_ROUND_NS < MFS_TERM_NS, "some questions may be lost");

int64_t mfs_term_clock(void); /* ns */

/* Serves only while the process at host:port consents, from now on, and not before it has done so
 * for the first time. Replaces an earlier one. 0 or a negative errno: -EINVAL (host is no numeric
 * address, or something is too long), or what starting a thread gave. */
int mfs_consent_begin(const char *host, uint16_t port, const char *who, const char *secret);

/* Serves without a term. */
void mfs_consent_end(void);

bool mfs_consent_needed(void);
int64_t mfs_consent_left(void); /* ns until the term is over; ≤ 0: it is */

/* May clients be served? Cheap: asked before each command. */
bool mfs_consent_serves(void);

#endif
