#include "vfs/names/acl.h"

#include <errno.h>
#include <stdint.h>

#include "base/bytes.h"

/* struct posix_acl_xattr_header and _entry of <linux/posix_acl_xattr.h>, little-endian. */
#define HEADER_LEN 4
#define ENTRY_LEN  8
#define VERSION    2U

enum { USER_OBJ = 0x01, USER = 0x02, GROUP_OBJ = 0x04, GROUP = 0x08, MASK = 0x10, OTHER = 0x20 };

/* The permission bits of `perm` that the caller's mode bits (shifted down) allow, and back. */
static void narrow(unsigned char *entry, mode_t *mode, unsigned shift)
{
    uint16_t perm = mfs_get_le16(entry + 2) & 7U;

    perm &= (*mode >> shift) & 7U;
    mfs_put_le16(entry + 2, perm);
    *mode = (*mode & ~((mode_t)7U << shift)) | ((mode_t)perm << shift);
}

int mfs_acl_inherit(void *acl, size_t len, mode_t *mode, bool *needed)
{
    unsigned char *p = acl, *group = NULL, *mask = NULL;
    unsigned seen = 0;

    if (len < HEADER_LEN || (len - HEADER_LEN) % ENTRY_LEN != 0 || mfs_get_le32(p) != VERSION)
        return -EINVAL;
    *needed = false;
    for (size_t at = HEADER_LEN; at < len; at += ENTRY_LEN) {
        uint16_t tag = mfs_get_le16(p + at);

        switch (tag) {
        case USER_OBJ:
            narrow(p + at, mode, 6);
            break;
        case OTHER:
            narrow(p + at, mode, 0);
            break;
        case GROUP_OBJ:
            group = p + at;
            break;
        case MASK:
            mask = p + at;
            *needed = true;
            break;
        case USER:
        case GROUP:
            *needed = true;
            break;
        default:
            return -EINVAL;
        }
        seen |= tag;
    }
    if ((seen & (USER_OBJ | GROUP_OBJ | OTHER)) != (USER_OBJ | GROUP_OBJ | OTHER))
        return -EINVAL;
    /* The group bits of a mode stand for the mask where there is one. */
    narrow(mask != NULL ? mask : group, mode, 3);
    return 0;
}
