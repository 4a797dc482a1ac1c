/* A policy from the options, and as it stands in cm.json. */
#ifndef MFS_CM_STATE_POLICY_CONF_H
#define MFS_CM_STATE_POLICY_CONF_H

#include "args/conf.h"
#include "cm/plan/policy.h"
#include "cm/state/state.h"

/* The policy's name and numbers from the options into *s, whose nodes and partitions are known by
 * then. 0, or -EINVAL with the reason. */
int mfs_policy_choose(const struct mfs_conf *conf, struct mfs_cm_state *s, struct mfs_err *err);

/* Does the running deployment have the policy that was asked for? Only options that were given
 * count. 0, or -EEXIST and the first difference. */
int mfs_policy_compare(const struct mfs_conf *conf, const struct mfs_cm_state *s,
                       struct mfs_err *err);

/* The policy `name` with the deployment's numbers, ready for use. 0, or -EINVAL with the reason. */
int mfs_policy_ready(const struct mfs_cm_state *s, const char *name, struct mfs_policy *p,
                     struct mfs_policy_settings *numbers, struct mfs_err *err);

/* What was given, as options: told one after the other. */
typedef void mfs_option_fn(void *arg, const char *key, const char *value);
void mfs_policy_tell(const struct mfs_policy_settings *s, mfs_option_fn *tell, void *arg);

#endif
