#include "proto/image_sum.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

#define KEY_BYTES 32
#define MAC_BYTES 16

struct mfs_image_sum {
    unsigned char key[KEY_BYTES];
    EVP_MAC_CTX *mac;
};

_Static_assert(2 * (KEY_BYTES + MAC_BYTES) + 1 == MFS_IMAGE_SUM_TEXT, "both, and a NUL");

/* The nonce may be a constant, as each key serves once. */
static int open_mac(struct mfs_image_sum *s)
{
    static unsigned char nonce[12];
    static char cipher[] = "AES-256-GCM";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_CIPHER, cipher, 0),
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_IV, nonce, sizeof nonce),
        OSSL_PARAM_construct_end()};
    EVP_MAC *gmac = EVP_MAC_fetch(NULL, "GMAC", NULL);

    s->mac = gmac ? EVP_MAC_CTX_new(gmac) : NULL;
    EVP_MAC_free(gmac);
    return s->mac && EVP_MAC_init(s->mac, s->key, sizeof s->key, params) ? 0 : -ENOMEM;
}

static int take_key(const char *text, unsigned char key[KEY_BYTES])
{
    char digits[2 * KEY_BYTES + 1] = "";

    if (!mfs_image_sum_valid(text))
        return -EINVAL;
    memcpy(digits, text, sizeof digits - 1);
    return mfs_text_unhex(digits, key, KEY_BYTES);
}

struct mfs_image_sum *mfs_image_sum_create(const char *text)
{
    struct mfs_image_sum *s = calloc(1, sizeof *s);
    int rc = s ? 0 : -ENOMEM;

    if (!rc)
        rc = text ? take_key(text, s->key) : mfs_random(s->key, sizeof s->key);
    if (!rc)
        rc = open_mac(s);
    if (!rc)
        return s;
    mfs_image_sum_destroy(s);
    errno = -rc;
    return NULL;
}

void mfs_image_sum_destroy(struct mfs_image_sum *s)
{
    if (!s)
        return;
    EVP_MAC_CTX_free(s->mac);
    OPENSSL_cleanse(s->key, sizeof s->key);
    free(s);
}

int mfs_image_sum_add(struct mfs_image_sum *s, const void *p, size_t n)
{
    return EVP_MAC_update(s->mac, p, n) ? 0 : -EIO;
}

int mfs_image_sum_text(struct mfs_image_sum *s, char out[MFS_IMAGE_SUM_TEXT])
{
    unsigned char mac[MAC_BYTES];
    size_t n = 0;

    if (!EVP_MAC_final(s->mac, mac, &n, sizeof mac) || n != sizeof mac)
        return -EIO;
    mfs_text_hex(s->key, sizeof s->key, out);
    mfs_text_hex(mac, sizeof mac, out + 2 * sizeof s->key);
    return 0;
}

bool mfs_image_sum_valid(const char *text)
{
    unsigned char raw[KEY_BYTES + MAC_BYTES];

    return strlen(text) == MFS_IMAGE_SUM_TEXT - 1 && !mfs_text_unhex(text, raw, sizeof raw);
}

bool mfs_image_sum_equal(const char *one, const char *two)
{
    return strlen(one) == MFS_IMAGE_SUM_TEXT - 1 && strlen(two) == MFS_IMAGE_SUM_TEXT - 1 &&
           !CRYPTO_memcmp(one, two, MFS_IMAGE_SUM_TEXT - 1);
}
