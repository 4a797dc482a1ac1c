#include "base/phases.h"

#include <stddef.h>

#include "base/clock.h"

static const char *const names[MFS_PHASES] = {
    [MFS_PHASE_PARTITION] = "partition", [MFS_PHASE_MOVE] = "move", [MFS_PHASE_ROOM] = "room",
    [MFS_PHASE_WINDOW] = "window",       [MFS_PHASE_DATA] = "data", [MFS_PHASE_MOUNTS] = "mounts",
    [MFS_PHASE_LOCK] = "lock",
};

static _Thread_local struct mfs_phases *mine;

const char *mfs_phase_name(enum mfs_phase phase)
{
    return names[phase];
}

void mfs_phases_to(struct mfs_phases *p)
{
    mine = p;
}

void mfs_phases_clear(struct mfs_phases *p)
{
    for (unsigned i = 0; i < MFS_PHASES; i++)
        atomic_store_explicit(&p->ns[i], 0, memory_order_relaxed);
    p->trips = p->nplaces = p->full = 0;
    atomic_store_explicit(&p->waits, 0, memory_order_relaxed);
}

void mfs_phase_begin(enum mfs_phase phase, uint32_t part, int64_t now)
{
    if (mine == NULL)
        return;
    atomic_store_explicit(&mine->part, part, memory_order_relaxed);
    atomic_store_explicit(&mine->since, now, memory_order_relaxed);
    atomic_store_explicit(&mine->waits, (uint32_t)phase + 1, memory_order_relaxed);
}

void mfs_phase_at(uint32_t part)
{
    if (mine != NULL)
        atomic_store_explicit(&mine->part, part, memory_order_relaxed);
}

/* No other thread writes it: that needs no locked addition. */
static void add(_Atomic int64_t *to, int64_t ns)
{
    atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + ns,
                          memory_order_relaxed);
}

static void add_trip(struct mfs_phases *p, uint32_t part, int64_t ns)
{
    uint32_t i = 0;

    p->trips++;
    while (i < p->nplaces && p->place[i].part != part)
        i++;
    if (i == MFS_PHASE_PLACES)
        return;
    if (i == p->nplaces)
        p->place[p->nplaces++] = (struct mfs_phase_place){.part = part, .least = ns};
    p->place[i].trips++;
    p->place[i].ns += ns;
    if (ns < p->place[i].least)
        p->place[i].least = ns;
}

void mfs_phase_end(uint32_t part, int64_t now)
{
    uint32_t waits;
    int64_t ns;

    if (mine == NULL)
        return;
    waits = atomic_load_explicit(&mine->waits, memory_order_relaxed);
    if (waits == 0)
        return;
    ns = now - atomic_load_explicit(&mine->since, memory_order_relaxed);
    add(&mine->ns[waits - 1], ns);
    if (waits - 1 == MFS_PHASE_PARTITION)
        add_trip(mine, part, ns);
    atomic_store_explicit(&mine->waits, 0, memory_order_relaxed);
}

void mfs_phase_full(uint32_t part)
{
    if (mine != NULL)
        mine->full = part + 1;
}

void mfs_phase_wait(enum mfs_phase phase)
{
    if (mine != NULL)
        mfs_phase_begin(phase, 0, mfs_clock_mono());
}

void mfs_phase_over(void)
{
    if (mine != NULL)
        mfs_phase_end(0, mfs_clock_mono());
}
