#include "fuse/kernel/sizes.h"

#include "base/clock.h"

/* How near to an invalidation a reply may not have been believed: the time from before the kernel
 * asked until it has looked at the reply, with much room for a busy machine. */
#define NEAR MFS_SEC

static bool any(const struct mfs_sizes *z)
{
    return z->replied_at != 0;
}

static uint64_t furthest(const struct mfs_sizes *z)
{
    return z->latest > z->before ? z->latest : z->before;
}

void mfs_sizes_replied(struct mfs_sizes *z, uint64_t size, int64_t now)
{
    if (!any(z)) {
        *z = (struct mfs_sizes){.latest = size, .since = now};
    } else if (now - z->since > NEAR && now - z->invalidated > NEAR) {
        /* If no invalidation came near the replies before, the last of these was believed. */
        z->before = z->invalidated < z->since - NEAR ? z->latest : furthest(z);
        z->latest = size;
        z->since = now;
    } else if (size > z->latest) {
        z->latest = size;
    }
    z->replied = size;
    z->replied_at = now;
}

void mfs_sizes_extended(struct mfs_sizes *z, uint64_t end)
{
    if (any(z) && end > z->latest)
        z->latest = end;
}

bool mfs_sizes_may_extend(struct mfs_sizes *z, uint64_t end, int64_t seen)
{
    if (z->replied_at >= seen && z->replied < end)
        return false;
    mfs_sizes_extended(z, end);
    return true;
}

void mfs_sizes_invalidated(struct mfs_sizes *z, int64_t now)
{
    if (any(z))
        z->invalidated = now;
}

bool mfs_sizes_may_be_stale(const struct mfs_sizes *z, uint64_t size, int64_t now)
{
    return z->invalidated != 0 && now - z->invalidated <= NEAR && furthest(z) > size;
}
