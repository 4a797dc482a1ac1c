/* Where a client's manager listens. */
#ifndef MFS_CLIENT_ADDRESS_H
#define MFS_CLIENT_ADDRESS_H

#include <stdint.h>

#include "args/paths.h"
#include "proto/messages.h"

/* cm, if it is not NULL, else the socket lm ("unix:" before it may be left out), else that of the
 * first node in the state directory at whose somebody listens, or of node 0. *node: whose lm it is,
 * MFS_NO_NODE: none's, or unknown. 0 or -ENAMETOOLONG. */
int mfs_client_address(const struct mfs_paths *paths, const char *lm, const char *cm,
                       char out[MFS_ADDRESS_MAX], uint32_t *node);

#endif
