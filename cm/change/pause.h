/* After failures: how long what cm does by itself waits before it tries again. Twice as long each
 * time, from 10 s to 5 min. All zeros: it need not wait. */
#ifndef MFS_CM_CHANGE_PAUSE_H
#define MFS_CM_CHANGE_PAUSE_H

#include <stdint.h>

#include "cm/nodes/control.h"

struct mfs_pause {
    int64_t until, length; /* mfs_clock_mono, ns */
};

/* It has failed: begins the next pause, and tells so in an event. */
void mfs_pause_begin(struct mfs_pause *p, const struct mfs_cm *cm, const char *what,
                     const char *why);

#endif
