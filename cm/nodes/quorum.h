/* What must be known elsewhere before cm acts, so that no two cms act on one partition.
 *
 * The nodes that have joined and stay are *voters*. A state is *held* when at least half of them
 * have said that they keep a copy of it. What ends or begins the service of a process (TAKE, FENCE,
 * RELEASE, TERM without terms, ASSIGN, STOP), and each table, is sent only when the state in which
 * it was decided is held. A cm on another machine begins only with the votes of more than half: one
 * of these has that state, or had voted before it was asked to keep it, and then did not.
 *
 * Voters change in steps: from one set to another only when the set before is the same everywhere,
 * and until the change is held both sets count, here and in an election (cm/cli/adopt.c). A node
 * that is silent for long, or leaves, loses its vote so.
 *
 * An lm that has voted keeps no copy of a lower term any more. If the cm that it has voted for
 * never begins, the present one raises its own term above, for which more than half must keep the
 * copy.
 *
 * Without copies (copies.h) there can't be another cm, and nothing is waited for. */
#ifndef MFS_CM_NODES_QUORUM_H
#define MFS_CM_NODES_QUORUM_H

#include "cm/nodes/control.h"

int mfs_quorum_init(struct mfs_cm *cm); /* after the copies; 0 or -ENOMEM */
/* What still waits fails with -ECONNABORTED, before the parts that have asked for it end. */
void mfs_quorum_fini(struct mfs_cm *cm);

/* mfs_conn_request to its lm, which is connected, with the copy before; what must be held waits for
 * that, at most for the time (then -ETIMEDOUT). Requests to one node keep their order. */
int mfs_node_ask(struct mfs_node *n, enum mfs_msg type, const void *body, int64_t timeout,
                 void (*done)(void *arg, const struct mfs_err *err, const void *reply), void *arg);
/* The same to a client of cm's own. */
int mfs_client_ask(struct mfs_cm *cm, struct mfs_conn *c, enum mfs_msg type, const void *body,
                   int64_t timeout,
                   void (*done)(void *arg, const struct mfs_err *err, const void *reply),
                   void *arg);

/* It has joined, with what it knows. */
void mfs_quorum_joined(struct mfs_node *n, const struct mfs_msg_join *m);
/* A node has said that it keeps a copy, or time has passed. */
void mfs_quorum_look(struct mfs_cm *cm);

/* Is this revision of the state held? */
bool mfs_quorum_has(const struct mfs_cm *cm, uint64_t revision);
/* Are so many voters in contact that states can be held? Without copies: yes. */
bool mfs_quorum_in_contact(const struct mfs_cm *cm, int64_t now);

/* Goes on in a term above that one. */
void mfs_quorum_raise(struct mfs_cm *cm, uint64_t above);

#endif
