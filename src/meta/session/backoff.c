/* The short waits for other clients, and the long one for memory. */
#include "meta/internal.h"

#include <assert.h>
#include <sys/random.h>

#include "base/phases.h"
#include "meta/session/session.h"
#include "partition/protocol.h"

#define WAIT_FIRST (50 * MFS_MSEC / 1000)
#define WAIT_LAST  (20 * MFS_MSEC)
#define ROOM_FIRST (5 * MFS_MSEC)
#define ROOM_LAST  (500 * MFS_MSEC)

static_assert(WAIT_FIRST < WAIT_LAST && ROOM_FIRST < ROOM_LAST, "pauses grow");
static_assert(2 * MFS_STEP_MAX_AGE <= MFS_TOMBSTONE_MS * MFS_MSEC,
              "a tombstone stops a command that was sent late");

bool mfs_backoff_wait(const struct mfs_meta *meta, struct mfs_backoff *p)
{
    int64_t now = mfs_clock_mono(), wait;
    uint32_t jitter = 0;

    if (!p->since)
        p->since = now;
    if (now - p->since > meta->limits.others_wait)
        return false;
    wait = WAIT_FIRST << (p->n < 9 ? p->n : 9);
    p->n++;
    if (wait > WAIT_LAST)
        wait = WAIT_LAST;
    if (getrandom(&jitter, sizeof jitter, GRND_NONBLOCK) < 0)
        jitter = (uint32_t)now;
    mfs_phase_wait(MFS_PHASE_MOUNTS);
    mfs_clock_sleep(wait / 2 + (int64_t)(jitter % 1000) * wait / 1000);
    mfs_phase_over();
    return true;
}

int64_t mfs_not_after(const struct mfs_meta *meta)
{
    return mfs_clock_mono() + meta->limits.step_max_age;
}

bool mfs_room_wait(const struct mfs_meta *meta, struct mfs_backoff *p)
{
    int64_t now = mfs_clock_mono(), wait, left;

    if (!p->since)
        p->since = now;
    left = p->since + mfs_store_full_wait(meta->store) - now;
    if (left <= 0)
        return false;
    wait = ROOM_FIRST << (p->n < 7 ? p->n : 7);
    p->n++;
    if (wait > ROOM_LAST)
        wait = ROOM_LAST;
    mfs_phase_wait(MFS_PHASE_ROOM);
    mfs_clock_sleep(wait < left ? wait : left);
    mfs_phase_over();
    return true;
}
