/* A partition's process proves what it is before it is told a password (decisions/0021).
 *
 *   caller → partition   mfs_prove USER NONCE
 *   partition → caller   HMAC(key, "memefs1" "partition" USER CALLER PARTITION NONCE)
 *
 *   key = HMAC(password of USER, "memefs1" "partition key")
 *
 * NONCE is 32 random bytes of the caller's, so an answer is good once. CALLER and PARTITION are the
 * two ends of the connection ("ADDRESS PORT"), each as the end that computes sees them: a process
 * in between that passes the question on to the true process has other ends than that process sees.
 * The process knows the keys, not the passwords (src/partition/prove.h).
 *
 * Needs nothing of ours but mac.h, as src/partition has it, too. */
#ifndef MFS_NET_PROOF_H
#define MFS_NET_PROOF_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include "base/crypto/mac.h"

#define MFS_PROOF_COMMAND "mfs_prove"
#define MFS_PROOF_NONCE   64                     /* hexadecimal digits */
#define MFS_PROOF_END_MAX (INET6_ADDRSTRLEN + 7) /* bytes of an end's text */
#define MFS_PROOF_USER    32                     /* bytes that a user's name has at most */
#define MFS_PROOF_SAYS    80                     /* bytes of what is said instead of a proof */

/* What the process of a partition needs to know instead of a password. 0 or a negative errno. */
int mfs_proof_key(const char *password, char key[MFS_MAC_TEXT]);

/* An end of a connection, from a numeric address in any form. 0 or -EINVAL. */
int mfs_proof_end(const char *host, uint16_t port, char out[MFS_PROOF_END_MAX]);

/* The proof itself. 0 or a negative errno. */
int mfs_proof_make(const char *key, const char *user, const char *caller, const char *partition,
                   const char *nonce, char out[MFS_MAC_TEXT]);

/* Demands a proof from the other end of a connected TCP socket, on which nothing else is under way,
 * and waits for it for at most timeout_ns; the socket may block or not. What is sent tells nothing
 * of the password, what is read is 71 bytes at most. 0, -EACCES: what has answered is not the
 * process that has this password, and `says` (if not NULL) is the beginning of what it said
 * instead; -ETIMEDOUT, -ECONNRESET, or what the system gave. */
int mfs_proof_demand(int fd, const char *user, const char *password, int64_t timeout_ns,
                     char says[MFS_PROOF_SAYS]);

#endif
