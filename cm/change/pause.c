#include "cm/change/pause.h"

#include <assert.h>

#include "base/clock.h"
#include "cm/state/events.h"

#define FIRST (10 * MFS_SEC)
#define MOST  (300 * MFS_SEC)

static_assert(FIRST < MOST, "the pause grows");

void mfs_pause_begin(struct mfs_pause *p, const struct mfs_cm *cm, const char *what,
                     const char *why)
{
    p->length = p->length ? p->length * 2 : FIRST;
    if (p->length > MOST)
        p->length = MOST;
    p->until = mfs_clock_mono() + p->length;
    mfs_event_add(cm->paths->events, "cm", what, "%s; next attempt in %lld s", why,
                  (long long)(p->length / MFS_SEC));
}
