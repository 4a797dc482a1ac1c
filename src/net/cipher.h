/* One direction of a connection after the proof: each frame is encrypted and authenticated, under a
 * key of this connection and direction, and by its number. So no process that does not hold the
 * secret can read, change, leave out, swap, repeat or invent one.
 *
 * AES-256-GCM (NIST SP 800-38D), by libcrypto. The nonce is the number of the frame, which is never
 * used again under a key; the tag follows the body. Belongs to one thread. No I/O. */
#ifndef MFS_NET_CIPHER_H
#define MFS_NET_CIPHER_H

#include <stddef.h>

#include "base/buf.h"

#define MFS_CIPHER_KEY 32 /* bytes */
#define MFS_CIPHER_TAG 16 /* by so many a frame grows */

struct mfs_cipher;

/* NULL: ENOMEM. */
struct mfs_cipher *mfs_cipher_create(const unsigned char key[MFS_CIPHER_KEY]);
void mfs_cipher_destroy(struct mfs_cipher *c); /* takes NULL */

/* Encrypts the last frame of *out, which begins at `mark`, in place. 0, or -ENOMEM or -EIO: the
 * frame is taken back. */
int mfs_cipher_seal(struct mfs_cipher *c, struct mfs_buf *out, size_t mark);

/* Decrypts a frame's body in place and makes *len what it was. 0, or -EBADMSG when it is not the
 * next frame of the end that has the key: the stream is lost. */
int mfs_cipher_open(struct mfs_cipher *c, char *body, size_t *len);

#endif
