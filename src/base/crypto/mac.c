#include "base/crypto/mac.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "base/text.h"

#define MAC_BYTES  32
#define FIELDS_MAX 1024

int mfs_mac(const void *key, size_t key_len, const char *const *fields, size_t n,
            char out[MFS_MAC_TEXT])
{
    unsigned char text[FIELDS_MAX], digest[MAC_BYTES];
    unsigned digest_len = 0;
    size_t len = 0;
    int rc = 0;

    for (size_t i = 0; i < n; i++) {
        size_t field = strlen(fields[i]) + 1;

        if (field > sizeof text - len)
            return -EMSGSIZE;
        memcpy(text + len, fields[i], field);
        len += field;
    }
    if (!HMAC(EVP_sha256(), key, (int)key_len, text, len, digest, &digest_len) ||
        digest_len != MAC_BYTES)
        rc = -EIO;
    else
        mfs_text_hex(digest, sizeof digest, out);
    OPENSSL_cleanse(text, len); /* what two ends share may be among the fields */
    OPENSSL_cleanse(digest, sizeof digest);
    return rc;
}

bool mfs_mac_equal(const char *given, const char right[MFS_MAC_TEXT])
{
    return strlen(given) == MFS_MAC_TEXT - 1 && !CRYPTO_memcmp(given, right, MFS_MAC_TEXT - 1);
}
