/* Time, from the kernel's two clocks. */
#include "base/clock.h"

#include <errno.h>

#include "base/waits.h"

int64_t mfs_clock_mono(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * MFS_SEC + ts.tv_nsec;
}

struct timespec mfs_clock_real(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return ts;
}

struct timespec mfs_clock_deadline(int64_t ns)
{
    int64_t at = mfs_clock_mono() + ns;

    return (struct timespec){.tv_sec = at / MFS_SEC, .tv_nsec = at % MFS_SEC};
}

void mfs_clock_sleep(int64_t ns)
{
    struct timespec at = mfs_clock_deadline(ns);

    mfs_waits_begin();
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
    mfs_waits_end();
}

int mfs_timespec_cmp(struct timespec a, struct timespec b)
{
    if (a.tv_sec != b.tv_sec)
        return a.tv_sec < b.tv_sec ? -1 : 1;
    if (a.tv_nsec != b.tv_nsec)
        return a.tv_nsec < b.tv_nsec ? -1 : 1;
    return 0;
}
