/* One partition's move from a node to another. The steps, as they stand in cm.json before each
 * begins:
 *
 *     copy ──► cut ──► release ──► (over)          the ordinary way
 *      └────────┴──► undo ──► drop ──► (over, or again from the start)
 *                      ├──► match ──► release      the source's process has died, the copy is exact
 *                      └──► force ──► release      it has died, and can't be revived
 *
 * copy: the target receives a copy. cut: it fences the source, gets to the same offset and serves.
 * Then the partition is the target's: one save holds that, the new table and step release; the
 * table goes to all nodes and clients, and the source's process is ended. Up to there everything
 * can be undone, as no client has the new process' password: undo asks whether the source lives,
 * and drop lets it serve again and ends the copy. A source that died when its copy was whole is
 * revived fenced, and its journal tells how far it had got: match asks the target to take the
 * partition if it is as far (a cm that comes after us asks the source again). When the source turns
 * out to be dead for good, force goes on with what the target has. The target may have been
 * promoted by a cut that failed later, and does not follow the source then: once the source may
 * have served again (drop is in the state), the target is never asked to take the partition. While
 * the state can't be written, that must not keep clients waiting: the copy is ended first then, and
 * after that the source serves, whatever the state says. Each step is one message that may be
 * repeated, so a step goes on after a loss of connection, of a Local Manager or of cm by sending it
 * again. */
#ifndef MFS_CM_PARTITIONS_MOVE_H
#define MFS_CM_PARTITIONS_MOVE_H

#include "cm/nodes/control.h"

#define MFS_MOVE_COPY    "copy"
#define MFS_MOVE_CUT     "cut"
#define MFS_MOVE_UNDO    "undo"
#define MFS_MOVE_MATCH   "match"
#define MFS_MOVE_DROP    "drop"
#define MFS_MOVE_FORCE   "force"
#define MFS_MOVE_RELEASE "release"

enum mfs_move_step {
    MFS_AT_WAITING,      /* for memory, or for other moves */
    MFS_AT_RECEIVE,      /* copy */
    MFS_AT_TAKE,         /* cut */
    MFS_AT_PUSH,         /* release: all nodes and clients get the table */
    MFS_AT_RELEASE,      /* the source's process ends */
    MFS_AT_ASK,          /* undo: does the source live? It is fenced, as one answers to that */
    MFS_AT_MATCH,        /* match: the target serves if it has all that the dead source had */
    MFS_AT_UNFENCE,      /* drop: the source serves; nothing leads back to cut or to force */
    MFS_AT_DROP,         /* the target's process ends */
    MFS_AT_UNFENCE_LAST, /* in case that a late TAKE has fenced it again meanwhile */
    MFS_AT_END_SOURCE,   /* force: the source's process has surely ended */
    MFS_AT_FORCE,        /* the target serves with what it has */
    MFS_AT_OVER
};

struct mfs_move_call;

struct mfs_move {
    struct mfs_cm *cm;
    uint32_t part, from, to; /* node ids */
    uint64_t bytes;          /* that it held when planned, then when copied */
    uint64_t arrived;        /* of the copy, as reported */
    uint64_t rate;           /* bytes/s, 0: no limit */
    bool cold;
    bool diskless; /* also when cold */

    enum mfs_move_step step;
    struct mfs_move_call *call; /* unanswered; NULL: none */
    unsigned tries;             /* of this step */
    unsigned returns;           /* from cut to copy */
    unsigned attempts;          /* of the whole */
    int64_t again_at;           /* when to go on, 0: not waiting for a time */
    int64_t away_since;         /* the step's node is not connected; 0: it is */
    int64_t unsaved_since;      /* the state can't be written; 0: it can */
    int64_t step_began, began;
    int64_t fenced_since; /* the source may be fenced since then; 0: it serves, or has gone */

    uint64_t copy_us, fence_us;
    uint64_t blocked_us; /* of all attempts; of those that failed at most so much */
    bool moved;          /* the partition is the target's */
    bool settled;        /* how it ends is certain, though something may be left to clear away */
    struct mfs_err why;  /* it does not move */
    struct mfs_msg_fence_reply died_at; /* the source, in step MATCH */

    void (*changed)(struct mfs_move *m, void *arg); /* copied, settled, over, or waiting again */
    void *arg;
};

/* Begins; the move is in step WAITING, or the step of the state when it is of an earlier cm. */
void mfs_move_begin(struct mfs_move *m);
void mfs_move_adopt(struct mfs_move *m, const struct mfs_cm_move *of);

/* The node has joined or has left: sends again what is not answered. */
void mfs_move_node_changed(struct mfs_move *m, uint32_t node);
void mfs_move_tick(struct mfs_move *m, int64_t now); /* some ten times per second */

/* Ends without clearing anything away; answers still to come are ignored. */
void mfs_move_fini(struct mfs_move *m);

/* For cm status: waiting, copying, cutting, ending, undoing. */
const char *mfs_move_shown(const struct mfs_move *m);

#endif
