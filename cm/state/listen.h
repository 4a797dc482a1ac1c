/* Where cm listens: at an address that its nodes can reach. */
#ifndef MFS_CM_STATE_LISTEN_H
#define MFS_CM_STATE_LISTEN_H

#include "args/conf.h"
#include "cm/state/state.h"

/* Fills s->listen, of which the provider and first_address are known. 0, or -EINVAL with the
 * reason: nodes elsewhere could not reach what was given, or there is nothing that they could. Asks
 * the kernel for routes. */
int mfs_listen_choose(const struct mfs_conf *conf, struct mfs_cm_state *s, struct mfs_err *err);

/* What to listen at, `former` being where an earlier cm did ("": there was none): the same port, as
 * nodes know it. */
void mfs_listen_again(const struct mfs_cm_state *s, const char *former, char out[MFS_ADDRESS_MAX]);

/* How nodes reach what listens at `address`: itself, or where that is any address of this machine,
 * the one of them that leads to the nodes. */
void mfs_listen_reachable(const struct mfs_cm_state *s, char address[MFS_ADDRESS_MAX]);

#endif
