/* What this process proves to a peer that connects, before that logs on (net/proof.h):
 *
 *     mfs_prove USER NONCE     → the proof, 64 hexadecimal digits
 *
 * Any peer may ask, once per connection: one that asks again gets an error, and is disconnected. So
 * strangers cost no more than by connecting. A connection to the UNIX socket has no ends to speak
 * of, and needs none: the directory of the socket is the owner's alone. */
#ifndef MFS_PARTITION_PROVE_H
#define MFS_PARTITION_PROVE_H

#include "partition/span.h"

/* Where this process listens; before it proves nothing. MFS_REDIS_OK, or MFS_REDIS_ERR: not a
 * numeric address and a port. */
int mfs_prove_at(struct mfs_span host, struct mfs_span port);

/* A user's key (mfs_proof_key). MFS_REDIS_ERR: too long, or one user too many. */
int mfs_prove_key(struct mfs_span user, struct mfs_span key);

#endif
