/* AES-256-GCM by libcrypto's EVP. Invariant: `number` grows with each frame, so no nonce is used
 * twice under a key; after a frame that does not verify the stream is not used again. */
#include "net/cipher.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/crypto/secure.h"
#include "proto/frame.h"

#define NONCE 12

struct mfs_cipher {
    EVP_CIPHER_CTX *ctx;
    unsigned char *key; /* in the secure heap */
    uint64_t number;    /* of the next frame */
};

struct mfs_cipher *mfs_cipher_create(const unsigned char key[MFS_CIPHER_KEY])
{
    struct mfs_cipher *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->ctx = EVP_CIPHER_CTX_new();
    c->key = mfs_secure_alloc(MFS_CIPHER_KEY);
    if (!c->ctx || !c->key) {
        mfs_cipher_destroy(c);
        return NULL;
    }
    memcpy(c->key, key, MFS_CIPHER_KEY);
    return c;
}

void mfs_cipher_destroy(struct mfs_cipher *c)
{
    if (!c)
        return;
    EVP_CIPHER_CTX_free(c->ctx);
    mfs_secure_free(c->key, MFS_CIPHER_KEY);
    free(c);
}

/* Ready for the next frame's bytes. From here to the context's reset it holds the key as well, in
 * ordinary memory. */
static int begin(struct mfs_cipher *c, int encrypt)
{
    unsigned char nonce[NONCE] = {0};

    mfs_put_be64(nonce + NONCE - sizeof c->number, c->number);
    return EVP_CipherInit_ex(c->ctx, EVP_aes_256_gcm(), NULL, c->key, nonce, encrypt) ? 0 : -EIO;
}

/* Frames are far shorter than what an int holds. */
static int encrypt(struct mfs_cipher *c, unsigned char *body, size_t len, unsigned char *tag)
{
    int n = 0, rest = 0, rc = begin(c, 1);

    if (!rc && (!EVP_EncryptUpdate(c->ctx, body, &n, body, (int)len) ||
                !EVP_EncryptFinal_ex(c->ctx, body + n, &rest) ||
                !EVP_CIPHER_CTX_ctrl(c->ctx, EVP_CTRL_AEAD_GET_TAG, MFS_CIPHER_TAG, tag)))
        rc = -EIO;
    EVP_CIPHER_CTX_reset(c->ctx);
    c->number += !rc;
    return rc;
}

int mfs_cipher_seal(struct mfs_cipher *c, struct mfs_buf *out, size_t mark)
{
    size_t len = mfs_buf_len(out) - mark - MFS_FRAME_HEAD;
    char *tag = mfs_buf_reserve(out, MFS_CIPHER_TAG), *frame = mfs_buf_data(out) + mark;
    int rc = tag ? encrypt(c, (unsigned char *)frame + MFS_FRAME_HEAD, len, (unsigned char *)tag)
                 : -ENOMEM;

    if (rc) {
        out->end = out->start + mark;
        return rc;
    }
    mfs_buf_commit(out, MFS_CIPHER_TAG);
    mfs_put_be32(frame, (uint32_t)(len + MFS_CIPHER_TAG));
    return 0;
}

static int decrypt(struct mfs_cipher *c, unsigned char *body, size_t len, unsigned char *tag)
{
    int n = 0, rest = 0, rc = begin(c, 0);

    if (!rc && (!EVP_DecryptUpdate(c->ctx, body, &n, body, (int)len) ||
                !EVP_CIPHER_CTX_ctrl(c->ctx, EVP_CTRL_AEAD_SET_TAG, MFS_CIPHER_TAG, tag) ||
                EVP_DecryptFinal_ex(c->ctx, body + n, &rest) <= 0))
        rc = -EBADMSG;
    EVP_CIPHER_CTX_reset(c->ctx);
    c->number += !rc;
    return rc ? -EBADMSG : 0;
}

int mfs_cipher_open(struct mfs_cipher *c, char *body, size_t *len)
{
    unsigned char *text = (unsigned char *)body;

    if (*len <= MFS_CIPHER_TAG)
        return -EBADMSG;
    *len -= MFS_CIPHER_TAG;
    return decrypt(c, text, *len, text + *len);
}
