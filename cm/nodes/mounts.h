/* What the clients of all nodes have done, as their lms tell. Nobody tells unasked: cm asks each
 * connected lm every 5 s while it serves figures, or while an operator's command has asked within
 * the last minute, and once when one asks. The loop's thread. */
#ifndef MFS_CM_NODES_MOUNTS_H
#define MFS_CM_NODES_MOUNTS_H

#include "cm/nodes/control.h"

int mfs_mounts_init(struct mfs_cm *cm);  /* 0 or -ENOMEM */
void mfs_mounts_fini(struct mfs_cm *cm); /* those who wait are called */

/* Of so many mounts at most cm knows, when it serves figures, how long each operation took, in
 * buckets. */
#define MFS_MOUNTS_FEW 32U

void mfs_mounts_always(struct mfs_cm *cm); /* from now on */

/* Calls `done` when what all nodes say is at most two seconds old, which is how often clients tell,
 * or, as some do not answer, after 0.3 s; maybe before it returns. 0 or -ENOMEM, without a call. */
int mfs_mounts_fresh(struct mfs_cm *cm, void (*done)(void *arg), void *arg);

/* All clients of nodes that are part of the deployment, with their node's name and address. The
 * list is the caller's to free, not what the mounts in it have. 0 or -ENOMEM. */
int mfs_mounts_list(const struct mfs_cm *cm, struct mfs_mounts *list);
void mfs_mounts_list_free(struct mfs_mounts *list);

/* mounts_sum.c: adds up operations by kind, and files and directories by path, of those in the
 * list. 0 or -ENOMEM. */
int mfs_mounts_sum_up(struct mfs_mounts *list);

/* How long the operations took that clients were seen to have done, in buckets. What a client had
 * done before it told this cm for the first time, or again after its node was away, is not in it.
 */
struct mfs_mounts_done {
    int64_t when; /* the last answer of a node, mono; 0: none */
    uint64_t bucket[MFS_METRIC_BUCKETS];
    uint64_t read, written; /* bytes, by the same clients */
};
const struct mfs_mounts_done *mfs_mounts_done(const struct mfs_cm *cm);

void mfs_mounts_forget(struct mfs_node *n); /* frees what it has told */

/* Handler of MFS_MSG_CLIENTS. */
void mfs_mounts_on_clients(struct mfs_conn *c, uint64_t id, const void *body, void *arg);

#endif
