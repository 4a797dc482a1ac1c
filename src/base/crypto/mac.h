/* The one kind of MAC: HMAC-SHA256 over fields, each with a NUL byte behind it. Needs little else
 * of ours (base/text), as src/partition has it, too. */
#ifndef MFS_BASE_CRYPTO_MAC_H
#define MFS_BASE_CRYPTO_MAC_H

#include <stdbool.h>
#include <stddef.h>

#define MFS_MAC_TEXT 65 /* bytes of one in hexadecimal, with its NUL */

/* Of n fields under a key. 0, -EMSGSIZE (together more than 1 KiB) or -EIO. */
int mfs_mac(const void *key, size_t key_len, const char *const *fields, size_t n,
            char out[MFS_MAC_TEXT]);

/* In constant time. */
bool mfs_mac_equal(const char *given, const char right[MFS_MAC_TEXT]);

#endif
