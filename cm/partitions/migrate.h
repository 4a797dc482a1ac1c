/* Carries out a list of moves of partitions, several at once, in an order that the nodes' memory
 * allows (move_order.h), each by the steps of move.h. At most one list is under way. What is under
 * way stands in cm.json, so that a cm that is killed goes on; moves that have not begun do
 * not: they are planned anew.
 *
 * Loop thread; nothing blocks. */
#ifndef MFS_CM_PARTITIONS_MIGRATE_H
#define MFS_CM_PARTITIONS_MIGRATE_H

#include "cm/nodes/control.h"

struct mfs_migrate_opts {
    bool cold;
    bool at_once; /* all that memory allows, from memory, also when cold: off a link that is full
                   * of what clients wait for. What is fenced is not asked any more, so the link is
                   * left to the copies. */
    bool small_first; /* time is short: most names and files are saved so */
    uint64_t rate;    /* bytes/s of one partition, 0: no limit */
};

struct mfs_migrate_each {
    uint32_t part, from, to;
    bool moved;          /* or it stayed where it was */
    uint64_t bytes;      /* that were copied */
    uint64_t copy_us;    /* from the first message until the copy was there */
    uint64_t blocked_us; /* from the fence until every Local Manager had the table, and what earlier
                          * attempts were fenced, at most */
};

struct mfs_migrate_result {
    uint32_t moved, undone;
    uint64_t bytes; /* of those moved */
    uint64_t blocked_us_max, blocked_us_total;
    uint32_t n;
    const struct mfs_migrate_each *each; /* valid until the callback returns */
};

/* `err` is NULL when all have moved, else it tells why the first one of the others has not. May
 * begin the next list. */
typedef void mfs_migrate_done(void *arg, const struct mfs_err *err,
                              const struct mfs_migrate_result *r);

/* Begins; `done` is called once, later, when every move is finished or undone (not when cm ends
 * before). 0, -EBUSY when a list is under way, -EINVAL when a move makes no sense (no such
 * partition there, no such node), -ENOMEM; then `done` is not called. */
int mfs_migrate_begin(struct mfs_cm *cm, const struct mfs_scale_move *moves, uint32_t n,
                      const struct mfs_migrate_opts *opts, mfs_migrate_done *done, void *arg);

/* Moves that have not begun yet stay undone, with this reason. */
void mfs_migrate_cancel(struct mfs_cm *cm, const char *why);

/* After a restart of cm: goes on with the moves in the state, as the nodes join. */
void mfs_migrate_resume(struct mfs_cm *cm);

/* Is something under way that has no `done` yet (after a resume)? Then `done` is called at its end;
 * false: there is nothing to wait for, and it is not called. */
bool mfs_migrate_await(struct mfs_cm *cm, mfs_migrate_done *done, void *arg);

/* A node has joined (again), or has reported. */
void mfs_migrate_joined(struct mfs_cm *cm, struct mfs_node *n, const struct mfs_msg_join *join);
/* It has left, and what ran on it has ended: what still had to be ended there is done. */
void mfs_migrate_left(struct mfs_cm *cm, uint32_t node);
void mfs_migrate_reported(struct mfs_cm *cm, struct mfs_node *n,
                          const struct mfs_msg_report *report);

/* Is the partition to move, or moving? */
bool mfs_migrate_wants(const struct mfs_cm *cm, uint32_t part);

/* Bytes that partitions which are to move there, or on their way, bring to a node (id). */
uint64_t mfs_migrate_bringing(const struct mfs_cm *cm, uint32_t node);

/* Bytes, partitions, rate and time of what is under way; all 0 and "" when nothing is. */
void mfs_migrate_progress(const struct mfs_cm *cm, struct mfs_progress *p);
/* Sets s->move, which the caller frees. 0 or -ENOMEM. */
int mfs_migrate_status(const struct mfs_cm *cm, struct mfs_status *s);

/* After the connections have been closed, before the loop is destroyed. */
void mfs_migrate_fini(struct mfs_cm *cm);

#endif
