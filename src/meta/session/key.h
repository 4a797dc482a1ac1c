/* A session's key in its partition: with a time to live, so that the session is alive as long as it
 * is there. It holds the client's node, by which others learn that cm has given the client up.
 * Pure. */
#ifndef MFS_META_SESSION_KEY_H
#define MFS_META_SESSION_KEY_H

#include "meta/call.h"

#define MFS_SESSION_NODE_TEXT 16

uint32_t mfs_session_part(const struct mfs_meta *meta, uint64_t sid); /* where the key is */

/* What the key of this client's session holds. A client without leases need not be waited for, so
 * it tells no node. */
void mfs_session_format_node(const struct mfs_meta *meta, char text[MFS_SESSION_NODE_TEXT]);
uint32_t mfs_session_parse_node(struct mfs_bytes text); /* or MFS_NO_NODE */

#endif
