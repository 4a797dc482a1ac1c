/* Does a redis process answer, and does its replica consent (decisions/0017)? Asked four
 * times a second of those that have a replica or are one; a regular look (fleet.h) comes once a
 * second and waits for each in turn.
 *
 * Loop thread; nothing blocks. */
#ifndef MFS_LM_REDIS_PULSE_H
#define MFS_LM_REDIS_PULSE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/loop.h"

#define MFS_PULSE_NS        (250 * 1000000LL) /* from one question to the next */
#define MFS_PULSE_SILENT_NS (800 * 1000000LL) /* a question unanswered for so long: silent */

struct mfs_pulse;

/* `changed` is called whenever one of the two answers below has changed; it must not end the pulse.
 * The path is copied, the password too. NULL: ENOMEM, or they are too long. */
struct mfs_pulse *mfs_pulse_begin(struct mfs_loop *loop, const char *unix_path,
                                  const char *admin_password, void (*changed)(void *arg),
                                  void *arg);
void mfs_pulse_end(struct mfs_pulse *p); /* takes NULL */

/* To be called each MFS_PULSE_NS: asks, unless the last question is open still. After a pause of
 * one's own (stopped, no processor) nobody is called silent for what he could not say. */
void mfs_pulse_beat(struct mfs_pulse *p, int64_t now);

bool mfs_pulse_silent(const struct mfs_pulse *p); /* false for NULL */
/* Its replica has not consented for half a term: it refuses clients already, or is about to. False
 * for NULL, and for one that is silent. */
bool mfs_pulse_starved(const struct mfs_pulse *p);

#endif
