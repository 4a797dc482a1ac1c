/* Does a redis process answer, and does its replica consent (decisions/0017)? Asked four
 * times a second of those that have a replica or are one; a regular look (instances.h) comes once a
 * second, and may wait that long for processes that hang.
 *
 * Loop thread; nothing blocks. */
#ifndef MFS_LM_REDIS_HEALTH_H
#define MFS_LM_REDIS_HEALTH_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "net/loop.h"

#define MFS_HEALTH_NS        (250 * MFS_MSEC) /* from one question to the next */
#define MFS_HEALTH_SILENT_NS (800 * MFS_MSEC) /* a question unanswered for so long: silent */

static_assert(3 * MFS_HEALTH_NS < MFS_HEALTH_SILENT_NS, "an answer may be late");

struct mfs_health;

/* `changed` is called whenever one of the two answers below has changed; it must not end the check.
 * The path is copied, the password too. NULL: ENOMEM, or they are too long. */
struct mfs_health *mfs_health_begin(struct mfs_loop *loop, const char *unix_path,
                                    const char *admin_password, void (*changed)(void *arg),
                                    void *arg);
void mfs_health_end(struct mfs_health *p); /* takes NULL */

/* To be called each MFS_HEALTH_NS: asks, unless the last question is open still. After a pause of
 * lm itself (stopped, no processor) no process counts as silent for an answer that lm could not
 * read. */
void mfs_health_check(struct mfs_health *p, int64_t now);

bool mfs_health_silent(const struct mfs_health *p); /* false for NULL */
/* Its replica has not consented for half a term: it refuses clients already, or is about to. False
 * for NULL, and for one that is silent. */
bool mfs_health_starved(const struct mfs_health *p);

#endif
