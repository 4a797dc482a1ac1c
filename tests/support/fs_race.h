/* What races of two mounts share: their outcome, and a start that is not always the same. */
#ifndef MFS_TESTS_FS_RACE_H
#define MFS_TESTS_FS_RACE_H

#include "fs_pair.h"

/* Both sides note how their call ended; after the next meeting each can judge both. */
enum { RC = 0, DATA = 2 };

static inline void note(struct pair *p, int rc)
{
    atomic_store(&p->shared->value[RC + p->side], rc < 0 ? -errno : 0);
}

static inline int noted(struct pair *p, int side)
{
    return (int)atomic_load(&p->shared->value[RC + side]);
}

/* After the race: exactly one side succeeded, the other failed with that error. Gives back the
 * winner. */
static inline int one_winner(struct pair *p, int loser_error)
{
    int winner;

    pair_meet(p);
    winner = noted(p, 0) == 0 ? 0 : 1;
    EQUAL(0, noted(p, winner));
    EQUAL(-loser_error, noted(p, !winner));
    return winner;
}

/* Sometimes the sides do not start quite together: every overlap is to be tried. */
static inline void stagger(struct pair *p)
{
    unsigned spins = pair_own_random(p, 4) ? 0 : pair_own_random(p, 20000);

    for (volatile unsigned i = 0; i < spins; i++)
        ;
}

/* Prepares as side 0, then both start. */
static inline void start(struct pair *p)
{
    pair_meet(p);
    stagger(p);
}

#endif
