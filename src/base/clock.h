/* Time. Waits and deadlines use the monotonic clock; what a file's times show is the real clock. */
#ifndef MFS_BASE_CLOCK_H
#define MFS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define MFS_MSEC 1000000LL    /* nanoseconds */
#define MFS_SEC  1000000000LL /* nanoseconds */

int64_t mfs_clock_mono(void); /* nanoseconds since some fixed point */
struct timespec mfs_clock_real(void);
void mfs_clock_sleep(int64_t ns); /* sleeps at least that long, also across signals */

/* -1, 0, 1 as a is before, at, after b. */
int mfs_timespec_cmp(struct timespec a, struct timespec b);

/* Absolute CLOCK_MONOTONIC time of now + ns, for pthread_cond_timedwait on a condition variable
 * made by mfs_cond_init. */
struct timespec mfs_clock_deadline(int64_t ns);

#endif
