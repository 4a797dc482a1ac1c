/* Integers to and from bytes: big-endian for keys and frames, little-endian for inode records. */
#ifndef MFS_BASE_BYTES_H
#define MFS_BASE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define MFS_BYTES_PUT(name, type, conv)                                                            \
    static inline void name(void *p, type v)                                                       \
    {                                                                                              \
        v = conv(v);                                                                               \
        memcpy(p, &v, sizeof v);                                                                   \
    }
#define MFS_BYTES_GET(name, type, conv)                                                            \
    static inline type name(const void *p)                                                         \
    {                                                                                              \
        type v;                                                                                    \
        memcpy(&v, p, sizeof v);                                                                   \
        return conv(v);                                                                            \
    }

MFS_BYTES_PUT(mfs_put_be16, uint16_t, htobe16)
MFS_BYTES_PUT(mfs_put_be32, uint32_t, htobe32)
MFS_BYTES_PUT(mfs_put_be64, uint64_t, htobe64)
MFS_BYTES_PUT(mfs_put_le16, uint16_t, htole16)
MFS_BYTES_PUT(mfs_put_le32, uint32_t, htole32)
MFS_BYTES_PUT(mfs_put_le64, uint64_t, htole64)
MFS_BYTES_GET(mfs_get_be16, uint16_t, be16toh)
MFS_BYTES_GET(mfs_get_be32, uint32_t, be32toh)
MFS_BYTES_GET(mfs_get_be64, uint64_t, be64toh)
MFS_BYTES_GET(mfs_get_le16, uint16_t, le16toh)
MFS_BYTES_GET(mfs_get_le32, uint32_t, le32toh)
MFS_BYTES_GET(mfs_get_le64, uint64_t, le64toh)

#undef MFS_BYTES_PUT
#undef MFS_BYTES_GET

#endif
