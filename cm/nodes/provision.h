/* cm's side of the provider (provider/provider.h): nodes are requested, watched, started again when
 * their Local Managers end, and given back. The loop's thread. */
#ifndef MFS_CM_NODES_PROVISION_H
#define MFS_CM_NODES_PROVISION_H

#include "cm/nodes/control.h"

/* Of cm->provider, which has been chosen; cm->address is known. 0 or a negative errno with the
 * reason. */
int mfs_provision_open(struct mfs_cm *cm, struct mfs_err *err);
void mfs_provision_close(struct mfs_cm *cm); /* what was started goes on */

/* Requests an lm for each. 0, or a negative errno with the reason: nothing has been begun. */
int mfs_provision_request(struct mfs_cm *cm, struct mfs_node *const *n, uint32_t count,
                          struct mfs_err *err);

/* Of an earlier cm: finds out what is there of each node, and starts what is not. */
void mfs_provision_adopt(struct mfs_cm *cm);

/* Its lm has joined: what stood for it until then may be gone. */
void mfs_provision_joined(struct mfs_node *n);

/* Its lm has lost its connection: unless what stands for it is watched, it is started when it does
 * not come again. Of a deployment that runs. */
void mfs_provision_hung_up(struct mfs_node *n);

/* As the provider's `signal`. */
int mfs_provision_signal(struct mfs_node *n, int signo);

/* Its lm, which is not connected, is to end. Where the provider can't tell it, nothing more is
 * waited for: what there is ends with the release. */
void mfs_provision_end(struct mfs_node *n);

/* Redis processes and a mount may be left at a node elsewhere whose lm has died, and only an lm
 * there can end them. Of a node that is to go: has one started for that, once, and says whether one
 * is on its way, to be asked when it has joined. */
bool mfs_provision_brought_back(struct mfs_node *n);

/* Is there, as far as the provider can tell, an lm at the node, or is one about to be? Not while it
 * stands in a queue. */
bool mfs_provision_runs(const struct mfs_node *n);

/* Gives it back, if that has not begun. True when that is over, be it by a failure (an event). To
 * be called again until then. */
bool mfs_provision_released(struct mfs_node *n);

/* Says which node waits for what behind "waited so long for it …" and the like: "" or " (…)". */
void mfs_provision_reason(const struct mfs_node *n, char *out, size_t size);

#endif
