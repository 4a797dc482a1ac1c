/* From options to a deployment: nodes, memory, partitions and which node gets them. */
#ifndef MFS_CM_STATE_SPEC_H
#define MFS_CM_STATE_SPEC_H

#include "args/conf.h"
#include "cm/provider/hostlist.h"
#include "cm/state/state.h"

/* Fills *s, phase "starting", with new passwords. 0, -EINVAL (wrong usage) with the reason, or
 * another negative errno. Clear it with mfs_cm_state_clear. Reads /proc/meminfo. */
int mfs_spec_make(const struct mfs_conf *conf, struct mfs_cm_state *s, struct mfs_err *err);

/* Does the running deployment have what was asked for? Only options that were given count. 0, or
 * -EEXIST and the first difference. */
int mfs_spec_compare(const struct mfs_conf *conf, const struct mfs_cm_state *s,
                     struct mfs_err *err);

/* Gives the partitions to the nodes by their weights (cm/state/weights.h): before any of them runs,
 * as nothing moves. 0 or a negative errno with the reason. Pure. */
int mfs_spec_divide(struct mfs_cm_state *s, struct mfs_err *err);

/* A node with that id at that slot (see mfs_cm_node), of the deployment's kind, its bandwidth as
 * told. 0, -ENAMETOOLONG or -EINVAL with the reason. Pure. */
int mfs_spec_node(const struct mfs_cm_state *s, uint32_t id, uint32_t slot, struct mfs_cm_node *n,
                  struct mfs_err *err);

/* The machine of the place of that slot, as an operator names it; "" where the provider knows none.
 * 0, or -EINVAL with the reason when there is no such place. Pure. */
int mfs_spec_host(const struct mfs_cm_state *s, uint32_t slot, char out[MFS_HOSTLIST_NAME],
                  struct mfs_err *err);

/* A figure of /proc/meminfo ("MemAvailable", …) in bytes; 0 when it is not there. */
uint64_t mfs_spec_meminfo(const char *key);

/* Does this machine have the memory for so many nodes, where they all run on it? 0 or -ENOMEM with
 * the reason. Reads /proc/meminfo. */
int mfs_spec_check_memory(const struct mfs_cm_state *s, uint32_t nodes, struct mfs_err *err);

/* The mount of node `index` by pattern: "%n" is the index; without it all mount at one path, or,
 * not `everywhere`, node 0 alone. "" for none. 0 or -ENAMETOOLONG. Pure. */
int mfs_spec_mount(const char *pattern, uint32_t index, bool everywhere, char out[MFS_PATH_MAX]);

#endif
