/* How many stripes may be on the way at once, to one node or to all, so that a link never waits for
 * the next one and not many wait for the link: bandwidth × delay, found without knowing either.
 *
 * What a stripe takes when nothing is in its way (`least`) is the delay and its time on the
 * link. With more on the way it takes no longer as long as they fit into the link; beyond that the
 * surplus waits: of f stripes that took t each, f · (1 − least / t) did. So the window grows while
 * less than one stripe waits, and shrinks when more than two do (as TCP Vegas has it; Brakmo,
 * O'Malley and Peterson, SIGCOMM 1994).
 *
 * Pure; the caller's lock. */
#ifndef MFS_DATA_WORKERS_PACE_H
#define MFS_DATA_WORKERS_PACE_H

#include <stdint.h>

struct mfs_pace {
    uint32_t lowest, most; /* stripes: bounds of the window */
    double window;         /* stripes */
    int64_t least;         /* ns; 0: nothing is known */
    double usual;          /* ns: what a stripe takes, the last ones counting most */
};

void mfs_pace_init(struct mfs_pace *pace, uint32_t lowest, uint32_t first, uint32_t most);

/* A stripe took so many ns (> 0): the least so far, which is remembered. */
int64_t mfs_pace_least(struct mfs_pace *pace, int64_t ns);

/* A stripe took so many ns, while `in_flight` stripes, itself among them, were on the way; `least`
 * it would have taken alone. */
void mfs_pace_took(struct mfs_pace *pace, double in_flight, int64_t ns, double least);

/* `least` is to be found anew, as links become slower, too. */
void mfs_pace_renew(struct mfs_pace *pace);

uint32_t mfs_pace_window(const struct mfs_pace *pace); /* lowest … most */

/* How many stripes ahead of a sequential reader a stripe behind this link must be asked for, when
 * so many others of the same link come before it and the reader takes `step` ns from stripe to
 * stripe: what is asked for then is there when it is wanted. At most `most`; 0 when nothing is
 * known. */
uint32_t mfs_pace_reach(const struct mfs_pace *pace, uint32_t before, int64_t step, uint32_t most);

#endif
