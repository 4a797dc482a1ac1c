/* The division of a node's memory; see the header for the rule. Sums are of byte counts that fit a
 * machine's memory, so 64 bits suffice; only products need 128. */
#include "lm/redis/memory_plan.h"

#include "cluster/capacity.h"

__extension__ typedef unsigned __int128 wide;

#define SOON_TAKEN   (64ULL << 20)  /* bytes that one process may take in within a second */
#define SHORT        (4ULL << 20)   /* bytes of fair headroom: what is idle is needed elsewhere */
#define WORTH_MOVING (256ULL << 10) /* bytes of fair headroom; less is not worth a hurry */

#define TABLES (3ULL << 20)   /* bytes that the allocator has resident for itself, about */
#define STEP   (256ULL << 10) /* limits are not changed for less */

#define PURGE_LEAST (32ULL << 20) /* resident, unused bytes worth a stall of milliseconds */

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t at_least_one(uint64_t v)
{
    return v ? v : 1;
}

uint64_t mfs_memory_reckon(const struct mfs_memory_seen *s, uint64_t *used, uint64_t *idle)
{
    uint64_t kept = less(s->resident, s->active + TABLES), own = less(s->anon, s->used), beyond;

    *used = less(s->used, s->not_counted);
    *idle = kept < own ? kept : own;
    beyond = less(s->anon, *used + *idle);
    if (beyond < MFS_CAPACITY_PROCESS)
        beyond = MFS_CAPACITY_PROCESS;
    return (beyond + s->others + STEP - 1) / STEP * STEP;
}

uint64_t mfs_memory_usable(uint64_t limit, uint64_t beyond)
{
    uint64_t room = less(mfs_capacity_partitions(limit), beyond);

    return room > limit / 8 ? room : limit / 8;
}

/* What the processes whose limit can be changed share: memory, what they have of it, their number.
 */
struct pool {
    uint64_t room, used, idle;
    size_t count;
};

static struct pool pool_of(const struct mfs_memory_part *parts, size_t n, uint64_t usable)
{
    struct pool pool = {.room = usable};

    for (size_t i = 0; i < n; i++) {
        if (parts[i].fixed) {
            pool.room = less(pool.room, parts[i].max);
        } else {
            pool.used += parts[i].used;
            pool.idle += parts[i].idle;
            pool.count++;
        }
    }
    return pool;
}

/* For each, of what none has. */
static uint64_t fair_headroom(const struct pool *pool)
{
    return pool->count ? less(pool->room, pool->used + pool->idle) / pool->count : 0;
}

/* The same when all that is idle has been given back. */
static uint64_t fair_at_best(const struct pool *pool)
{
    return pool->count ? less(pool->room, pool->used) / pool->count : 0;
}

/* Of what it has idle, as much as there is room for. */
static uint64_t idle_that_fits(const struct pool *pool, uint64_t idle)
{
    uint64_t room = less(pool->room, pool->used);

    return pool->idle <= room ? idle : (uint64_t)((wide)idle * room / pool->idle);
}

void mfs_memory_plan(const struct mfs_memory_part *parts, size_t n, uint64_t usable, uint64_t *want)
{
    struct pool pool = pool_of(parts, n, usable);

    for (size_t i = 0; i < n; i++) {
        if (parts[i].fixed)
            want[i] = at_least_one(parts[i].max);
        else if (pool.used <= pool.room)
            want[i] = at_least_one(parts[i].used + idle_that_fits(&pool, parts[i].idle) +
                                   fair_headroom(&pool));
        else
            want[i] = at_least_one((uint64_t)((wide)parts[i].used * pool.room / pool.used));
    }
}

uint64_t mfs_memory_grant(const struct mfs_memory_part *parts, size_t n, uint64_t usable, size_t i,
                          uint64_t want)
{
    uint64_t others = 0, room;

    if (want <= parts[i].max)
        return want;
    for (size_t k = 0; k < n; k++)
        others += k == i ? 0 : parts[k].max;
    room = less(usable, others);
    if (room < parts[i].max)
        return parts[i].max;
    return want < room ? want : room;
}

/* Is `room` less than its part of what is fair, or too little for one write that would fit? */
static bool is_short(uint64_t room, uint64_t fair, unsigned part, uint64_t write)
{
    return room < fair / part || (room < write && fair >= write);
}

bool mfs_memory_worthwhile(const struct mfs_memory_part *parts, size_t n, uint64_t usable,
                           const uint64_t *want, uint64_t write)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        sum += parts[i].max;
        if (!parts[i].fixed && want[i] > parts[i].max &&
            is_short(less(parts[i].max, parts[i].used), less(want[i], parts[i].used), 2, write))
            return true;
    }
    return sum > usable;
}

bool mfs_memory_short(const struct mfs_memory_part *parts, size_t n, uint64_t usable)
{
    struct pool pool = pool_of(parts, n, usable);

    return fair_headroom(&pool) < SHORT;
}

bool mfs_memory_urgent(const struct mfs_memory_part *parts, size_t n, uint64_t usable,
                       uint64_t write, uint64_t moved)
{
    struct pool pool = pool_of(parts, n, usable);
    uint64_t fair = fair_at_best(&pool);

    if (fair >= WORTH_MOVING && fair < SOON_TAKEN && moved >= WORTH_MOVING)
        return true;
    for (size_t i = 0; i < n && fair >= WORTH_MOVING; i++) {
        if (!parts[i].fixed && is_short(less(parts[i].max, parts[i].used), fair, 4, write))
            return true;
    }
    return false;
}

bool mfs_memory_purge_due(struct mfs_memory_rest *rest, uint64_t used, uint64_t rss)
{
    uint64_t excess = less(rss, used);
    bool much = !rest->purged && excess >= rest->normal + PURGE_LEAST;
    bool due = much && rest->much && used <= rest->used;

    if (!much)
        rest->normal = excess;
    rest->much = much && !due;
    rest->purged = due;
    rest->used = used;
    return due;
}
