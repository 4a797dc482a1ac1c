/* Inside a move: what its parts share. */
#ifndef MFS_CM_PARTITIONS_MOVE_IMPL_H
#define MFS_CM_PARTITIONS_MOVE_IMPL_H

#include "cm/partitions/move.h"

/* move.c */
void mfs_move_enter(struct mfs_move *m, enum mfs_move_step step); /* saves, then acts */
void mfs_move_settle(struct mfs_move *m, bool moved);
void mfs_move_over(struct mfs_move *m);
const char *mfs_move_name_of(const struct mfs_move *m, uint32_t node);

/* move_state.c */
struct mfs_cm_move *mfs_move_state(const struct mfs_move *m); /* NULL: none */
int mfs_move_state_add(struct mfs_move *m);
void mfs_move_state_drop(struct mfs_move *m);
int mfs_move_save(struct mfs_move *m);                    /* a failure is logged */
bool mfs_move_unsaved_for_long(const struct mfs_move *m); /* longer than clients should wait */
void mfs_move_blame_state(const struct mfs_move *m, struct mfs_err *why);

/* move_ask.c: the step's message. Answers come in by mfs_move_answer unless the connection
 * was lost: then the message is sent again when the node has joined. */
void mfs_move_send(struct mfs_move *m);
void mfs_move_forget_call(struct mfs_move *m);    /* its answer is no longer of interest */
uint32_t mfs_move_node(const struct mfs_move *m); /* that the step's message goes to */

/* move_answer.c */
void mfs_move_answer(struct mfs_move *m, const struct mfs_err *err, const void *reply);
void mfs_move_undo(struct mfs_move *m, const struct mfs_err *why); /* an event, then step ASK */

/* move_cut.c: the target serves: writes that down, pushes the table, then goes on to RELEASE. 0, or
 * a negative errno: no table has been pushed, and the target will be asked once more. */
int mfs_move_cut(struct mfs_move *m, const struct mfs_msg_take_reply *r);

#endif
