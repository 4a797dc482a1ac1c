/* Changes of a deployment's nodes, and of what they hold. The steps, as they stand in cm.json
 * before each begins:
 *
 *     come ──► move ──► go ──► (over)
 *      └──► undo ──► (over)                 renew ──► go ──► (over)
 *
 * come: nodes are started, join, get the table and mount. move: partitions move by the planner's
 * plan, which is made anew as often as moves fail (bounded). go: the nodes that leave, empty now,
 * are stopped, and forgotten one by one. renew: of nodes that are dead, and to be forgotten,
 * partitions without a replica begin empty elsewhere (renew.c). undo: nodes of which one failed to
 * come are stopped again, and none leaves. A restarted cm goes on with the step. What leaves are
 * the nodes with the highest ids, or those that a drain names; all of them are marked in cm.json.
 *
 * Loop thread; nothing blocks. */
#ifndef MFS_CM_CHANGE_SCALE_SCALE_H
#define MFS_CM_CHANGE_SCALE_SCALE_H

#include "cm/nodes/control.h"

/* The end: `r` is what was done, also where err tells a failure; NULL when the deployment is being
 * stopped. Both are valid until the return. May begin the next change. */
typedef void mfs_scale_done(void *arg, const struct mfs_err *err, const struct mfs_scale_report *r);

/* Begins what is asked for, or only plans it (dry_run); `who` decided it, on which figures: for the
 * events. `done` is called once, at the end, perhaps before the return (a dry run); not when cm
 * ends before. 0, or a negative errno with the reason, and `done` is not called: -EINVAL (wrong
 * numbers), -EBUSY (another change is under way), -ENOSPC (what stays can't hold the data), -ENOMEM
 * (the machine has not that much), -ENODEV (a node is not there), -EAGAIN (a node has not told
 * figures yet: ask again a second later). A change to that very number of nodes that is under way
 * is joined. */
int mfs_scale_begin(struct mfs_cm *cm, const struct mfs_msg_scale *what, const char *who,
                    mfs_scale_done *done, void *arg, struct mfs_err *err);

/* Has the node leave, too, when a change that moves partitions is under way. False: it can't be
 * done just now. */
bool mfs_scale_extend(struct mfs_cm *cm, struct mfs_node *n);

/* How far it is; all 0 and "" when there is none. */
void mfs_scale_progress(const struct mfs_cm *cm, struct mfs_progress *p);

/* After a restart of cm, once the nodes have been adopted. */
void mfs_scale_resume(struct mfs_cm *cm);

/* What befalls a node. gone: true when that is all that is to be done about it. */
void mfs_scale_joined(struct mfs_cm *cm, struct mfs_node *n, const struct mfs_msg_join *m);
bool mfs_scale_gone(struct mfs_cm *cm, struct mfs_node *n, int code, const char *why);

/* The deployment is being stopped: answers the callers that wait, and does nothing more. */
void mfs_scale_stop(struct mfs_cm *cm);
void mfs_scale_fini(struct mfs_cm *cm);

/* Handlers of messages of the command line. */
void mfs_scale_on_scale(struct mfs_conn *c, uint64_t id, const void *body, void *arg);
void mfs_scale_on_progress(struct mfs_conn *c, uint64_t id, const void *body, void *arg);

#endif
