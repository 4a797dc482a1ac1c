/* The numbers of re-planning, from the options. */
#ifndef MFS_CM_STATE_REBALANCE_CONF_H
#define MFS_CM_STATE_REBALANCE_CONF_H

#include "args/conf.h"
#include "cm/plan/rebalance_policy.h"

/* What was given; the rest stays 0. */
void mfs_rebalance_choose(const struct mfs_conf *conf, struct mfs_rebalance_settings *s);

/* Does what runs have what was asked for? Only options that were given count. 0, or -EEXIST and the
 * first difference. */
int mfs_rebalance_compare(const struct mfs_conf *conf, const struct mfs_rebalance_settings *has,
                          struct mfs_err *err);

/* What was given, as options: told one after the other. */
void mfs_rebalance_tell(const struct mfs_rebalance_settings *s,
                        void (*tell)(void *arg, const char *key, const char *value), void *arg);

#endif
