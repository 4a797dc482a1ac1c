/* Both ends prove that they hold the deployment's secret before anything else is read.
 *
 *   listener → caller   challenge {version, key: Kl}
 *   caller → listener   proof     {role, key: Kc, mac: HMAC(secret, "memefs1" "caller" role Kl Kc)}
 *   listener → caller   welcome   {mac: HMAC(secret, "memefs1" "listener" role Kl Kc)}
 *
 * HMAC-SHA256, fields with a NUL byte behind each. Kl and Kc are public keys of X25519 that each
 * end makes for this connection alone (base/crypto/exchange.h). They are nonces as well: both in
 * each MAC make a recorded exchange useless; the direction in it keeps a proof from being sent
 * back. The state machine does no I/O. */
#ifndef MFS_NET_AUTH_H
#define MFS_NET_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "net/cipher.h"
#include "base/crypto/exchange.h"

#define MFS_AUTH_FRAME_MAX 1024 /* of any frame before both are authenticated */
#define MFS_AUTH_KEY_TEXT  (2 * MFS_EXCHANGE_KEY + 1)
#define MFS_AUTH_ROLE_MAX  16

struct mfs_secret {
    size_t len;
    const void *bytes; /* what mfs_secret_load makes is in the secure heap (base/crypto/secure.h) */
};

/* Makes a new secret file (0600, 64 hexadecimal digits). 0 or a negative errno. */
int mfs_secret_create(const char *path);

/* Reads it; refuses a file that others than its owner may read, with the reason. When it fails,
 * nothing is left to free. */
int mfs_secret_load(const char *path, struct mfs_secret *s, struct mfs_err *err);
void mfs_secret_free(struct mfs_secret *s); /* wipes it; one that is zero is fine */

enum mfs_auth_state { MFS_AUTH_WAITING, MFS_AUTH_DONE };

struct mfs_auth {
    const struct mfs_secret *secret; /* borrowed */
    bool caller;
    int step;
    char role[MFS_AUTH_ROLE_MAX]; /* what the caller says it is: "cli", "lm", "client" */
    char own[MFS_AUTH_KEY_TEXT], peer[MFS_AUTH_KEY_TEXT];
    struct mfs_exchange exchange;
};

/* role is the caller's own; a listener passes NULL and finds the peer's in auth.role at the end.
 * A listener's challenge is appended to *out as a frame. 0 or a negative errno. To be ended in any
 * case, which wipes its key. */
int mfs_auth_begin(struct mfs_auth *a, const struct mfs_secret *secret, const char *role,
                   struct mfs_buf *out);

/* Takes one frame's body and appends the answer, if any, to *out. Returns MFS_AUTH_WAITING,
 * MFS_AUTH_DONE, or -EACCES/-EPROTO: hang up. */
int mfs_auth_step(struct mfs_auth *a, const char *body, size_t len, struct mfs_buf *out,
                  struct mfs_err *err);

void mfs_auth_end(struct mfs_auth *a);

/* When it is DONE: what encrypts that which this end sends, and decrypts what it gets. Their keys
 * come from the secret and from what X25519 makes of both ends' keys, so no other connection has
 * them, and they cannot be made again later. 0, -ENOMEM, -EIO, or -EPROTO: the other end's key is
 * none. */
int mfs_auth_ciphers(const struct mfs_auth *a, struct mfs_cipher **sends,
                     struct mfs_cipher **receives);

#endif
