#include "base/crypto/exchange.h"

#include <errno.h>
#include <openssl/evp.h>

#include "base/crypto/secure.h"

int mfs_exchange_create(struct mfs_exchange *x)
{
    size_t secret = MFS_EXCHANGE_KEY, open = sizeof x->open;
    EVP_PKEY *pair;
    int rc = -EIO;

    x->secret = mfs_secure_alloc(MFS_EXCHANGE_KEY);
    if (!x->secret)
        return -ENOMEM;
    pair = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
    if (pair && EVP_PKEY_get_raw_private_key(pair, x->secret, &secret) > 0 &&
        EVP_PKEY_get_raw_public_key(pair, x->open, &open) > 0)
        rc = 0;
    EVP_PKEY_free(pair);
    return rc;
}

void mfs_exchange_destroy(struct mfs_exchange *x)
{
    mfs_secure_free(x->secret, MFS_EXCHANGE_KEY);
    *x = (struct mfs_exchange){0};
}

/* libcrypto refuses keys of small order, with which any listener would know what is shared. */
static int derive(EVP_PKEY_CTX *ctx, EVP_PKEY *theirs, unsigned char *shared)
{
    size_t n = MFS_EXCHANGE_KEY;

    if (EVP_PKEY_derive_init(ctx) <= 0)
        return -EIO;
    if (EVP_PKEY_derive_set_peer(ctx, theirs) <= 0 || EVP_PKEY_derive(ctx, shared, &n) <= 0)
        return -EPROTO;
    return n == MFS_EXCHANGE_KEY ? 0 : -EIO;
}

int mfs_exchange_shared(const struct mfs_exchange *x, const unsigned char theirs[MFS_EXCHANGE_KEY],
                        unsigned char shared[MFS_EXCHANGE_KEY])
{
    EVP_PKEY *own =
        EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, x->secret, MFS_EXCHANGE_KEY);
    EVP_PKEY *peer = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, theirs, MFS_EXCHANGE_KEY);
    EVP_PKEY_CTX *ctx = own ? EVP_PKEY_CTX_new(own, NULL) : NULL;
    int rc = ctx && peer ? derive(ctx, peer, shared) : -EIO;

    EVP_PKEY_CTX_free(ctx);
    EVP_PKEY_free(peer);
    EVP_PKEY_free(own);
    return rc;
}
