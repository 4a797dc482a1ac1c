/* Both ends prove that they hold the deployment's secret before anything else is read.
 *
 *   listener → caller   challenge {version, nonce: Nl}
 *   caller → listener   proof     {role, nonce: Nc, mac: HMAC(secret, "memefs1 caller"  role Nl
 * Nc)} listener → caller   welcome   {mac: HMAC(secret, "memefs1 listener" role Nl Nc)}
 *
 * HMAC-SHA256, nonces of 32 random bytes, fields joined by NUL bytes. Both nonces in each MAC make
 * a recorded exchange useless; the direction in it keeps a proof from being sent back. The state
 * machine does no I/O. */
#ifndef MFS_WIRE_AUTH_H
#define MFS_WIRE_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "wire/cipher.h"

#define MFS_AUTH_FRAME_MAX  1024 /* of any frame before both are authenticated */
#define MFS_AUTH_NONCE      32   /* bytes */
#define MFS_AUTH_NONCE_TEXT (2 * MFS_AUTH_NONCE + 1)
#define MFS_AUTH_ROLE_MAX   16
#define MFS_AUTH_SECRET_MAX 256

struct mfs_secret {
    size_t len;
    unsigned char bytes[MFS_AUTH_SECRET_MAX];
};

/* Makes a new secret file (0600, 64 hexadecimal digits). 0 or a negative errno. */
int mfs_secret_create(const char *path, struct mfs_secret *s);

/* Reads it; refuses a file that others than its owner may read, with the reason. */
int mfs_secret_load(const char *path, struct mfs_secret *s, struct mfs_err *err);

enum mfs_auth_state { MFS_AUTH_WAITING, MFS_AUTH_DONE };

struct mfs_auth {
    const struct mfs_secret *secret; /* borrowed */
    bool caller;
    int step;
    char role[MFS_AUTH_ROLE_MAX]; /* what the caller says it is: "cli", "lm", "client" */
    char own[MFS_AUTH_NONCE_TEXT], peer[MFS_AUTH_NONCE_TEXT];
};

/* role is the caller's own; a listener passes NULL and finds the peer's in auth.role at the end.
 * A listener's challenge is appended to *out as a frame. 0 or a negative errno. */
int mfs_auth_begin(struct mfs_auth *a, const struct mfs_secret *secret, const char *role,
                   struct mfs_buf *out);

/* Takes one frame's body and appends the answer, if any, to *out. Returns MFS_AUTH_WAITING,
 * MFS_AUTH_DONE, or -EACCES/-EPROTO: hang up. */
int mfs_auth_step(struct mfs_auth *a, const char *body, size_t len, struct mfs_buf *out,
                  struct mfs_err *err);

/* When it is DONE: what encrypts that which this end sends, and decrypts what it gets. Their keys
 * come from the secret and both nonces, so no other connection has them. 0, -ENOMEM or -EIO. */
int mfs_auth_ciphers(const struct mfs_auth *a, struct mfs_cipher **sends,
                     struct mfs_cipher **receives);

#endif
