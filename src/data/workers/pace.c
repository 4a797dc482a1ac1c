#include "data/workers/pace.h"

#define FEW      1.0 /* stripes that wait: the window may grow, */
#define MANY     2.0 /* … and shrinks */
#define USUAL_OF 8.0 /* the last one is an eighth of what is usual */

void mfs_pace_init(struct mfs_pace *pace, uint32_t lowest, uint32_t first, uint32_t most)
{
    *pace = (struct mfs_pace){.lowest = lowest, .most = most, .window = first};
}

int64_t mfs_pace_least(struct mfs_pace *pace, int64_t ns)
{
    if (!pace->least || ns < pace->least)
        pace->least = ns;
    return pace->least;
}

/* By one stripe per window of stripes that say so. A window that is not made use of stays. */
void mfs_pace_took(struct mfs_pace *pace, double in_flight, int64_t ns, double least)
{
    double waiting = (double)ns > least ? in_flight * (1 - least / (double)ns) : 0;

    pace->usual += ((double)ns - pace->usual) / (pace->usual > 0 ? USUAL_OF : 1);
    if (waiting < FEW && in_flight >= pace->window - 1)
        pace->window += 1 / pace->window;
    else if (waiting > MANY)
        pace->window -= 1 / pace->window;
    if (pace->window < pace->lowest)
        pace->window = pace->lowest;
    if (pace->window > pace->most)
        pace->window = pace->most;
}

void mfs_pace_renew(struct mfs_pace *pace)
{
    pace->least = 0;
}

uint32_t mfs_pace_window(const struct mfs_pace *pace)
{
    return (uint32_t)(pace->window + 0.5);
}

uint32_t mfs_pace_reach(const struct mfs_pace *pace, uint32_t before, int64_t step, uint32_t most)
{
    double reach;

    if (pace->usual <= 0 || step <= 0)
        return 0;
    /* What comes before it is on the link at the same time; one more, as times vary. */
    reach = pace->usual * (before + 2) / (double)step;
    return reach < most ? (uint32_t)reach : most;
}
