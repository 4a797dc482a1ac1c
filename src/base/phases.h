/* Where the time of a call goes. A thread that serves a call has a struct in which the layers below
 * note what it waits for; a thread without one notes nothing. Noting takes no lock and, as those
 * that wait read the clock anyhow, no time to speak of. */
#ifndef MFS_BASE_PHASES_H
#define MFS_BASE_PHASES_H

#include <stdatomic.h>
#include <stdint.h>

enum mfs_phase {
    MFS_PHASE_PARTITION, /* a round trip: partitions are asked, and answer */
    MFS_PHASE_MOVE,      /* a partition is being moved, or can't be reached: for a new table */
    MFS_PHASE_ROOM,      /* partitions have no memory left */
    MFS_PHASE_WINDOW,    /* too much is written and not yet stored */
    MFS_PHASE_DATA,      /* other threads of this client store or fetch the file's data */
    MFS_PHASE_MOUNTS,    /* other mounts have to drop what they know */
    MFS_PHASE_LOCK,      /* a file lock of another holder */
    MFS_PHASES
};

#define MFS_PHASE_PLACES 4U

/* Round trips to one partition: of those to several at once, the one that answered last. */
struct mfs_phase_place {
    uint32_t part, trips;
    int64_t ns, least;
};

/* The thread's own, but for what is atomic, which others may read. */
struct mfs_phases {
    _Atomic int64_t ns[MFS_PHASES]; /* of waits that are over */
    uint32_t trips;
    uint32_t nplaces;
    struct mfs_phase_place place[MFS_PHASE_PLACES]; /* the first few of them */
    uint32_t full;                                  /* the partition that had no memory, plus 1 */
    _Atomic uint32_t waits;                         /* enum mfs_phase plus 1; 0: for nothing */
    _Atomic uint32_t part;                          /* of the first two, which */
    _Atomic int64_t since;                          /* mono */
};

/* What the calling thread does from now on is noted there; NULL: nowhere. */
void mfs_phases_to(struct mfs_phases *p);

void mfs_phases_clear(struct mfs_phases *p);

/* Of the calling thread: it waits from now on, by mono time. An inner one of two ends both. */
void mfs_phase_begin(enum mfs_phase phase, uint32_t part, int64_t now);
void mfs_phase_at(uint32_t part); /* for this partition, by now */
/* … until now; `part`: which it was that it waited for. */
void mfs_phase_end(uint32_t part, int64_t now);
void mfs_phase_full(uint32_t part); /* that one has no memory */

/* For a thread that waits for no partition: both, around a wait. */
void mfs_phase_wait(enum mfs_phase phase);
void mfs_phase_over(void);

const char *mfs_phase_name(enum mfs_phase phase); /* "partition", "move", … */

#endif
