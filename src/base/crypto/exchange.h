/* What two strangers agree on while others listen: X25519 (RFC 7748), by libcrypto. A pair of keys
 * is made for one connection and forgotten with it, so that no secret that is learned later opens
 * what was recorded. Pure; safe in all threads. */
#ifndef MFS_BASE_CRYPTO_EXCHANGE_H
#define MFS_BASE_CRYPTO_EXCHANGE_H

#define MFS_EXCHANGE_KEY 32 /* bytes of each key, and of what both share */

struct mfs_exchange {
    unsigned char *secret;                /* in the secure heap (base/crypto/secure.h) */
    unsigned char open[MFS_EXCHANGE_KEY]; /* for the other end */
};

/* A new pair. 0, -ENOMEM or -EIO; to be destroyed in any case. */
int mfs_exchange_create(struct mfs_exchange *x);
void mfs_exchange_destroy(struct mfs_exchange *x); /* wipes; one that is zero is fine */

/* What the end that has x shares with the one that has made the key `theirs`. 0; -EPROTO: that is
 * none that can be used; -EIO. To be wiped by the caller. */
int mfs_exchange_shared(const struct mfs_exchange *x, const unsigned char theirs[MFS_EXCHANGE_KEY],
                        unsigned char shared[MFS_EXCHANGE_KEY]);

#endif
