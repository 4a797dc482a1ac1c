/* Runs an event loop until something holds. */
#ifndef MFS_TESTS_LOOP_UNTIL_H
#define MFS_TESTS_LOOP_UNTIL_H

#include <stdbool.h>

#include "net/loop.h"

/* Asks every 5 ms, for 20 s at most. Did it come to hold? */
bool loop_until(struct mfs_loop *loop, bool (*holds)(void *arg), void *arg);

#endif
