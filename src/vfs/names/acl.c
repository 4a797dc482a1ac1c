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

static bool is_acl(const unsigned char *p, size_t len)
{
    return len >= HEADER_LEN && (len - HEADER_LEN) % ENTRY_LEN == 0 && mfs_get_le32(p) == VERSION;
}

int mfs_acl_inherit(void *acl, size_t len, mode_t *mode, bool *needed)
{
    unsigned char *p = acl, *group = NULL, *mask = NULL;
    unsigned seen = 0;

    if (!is_acl(p, len))
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

bool mfs_ids_in_group(const struct mfs_ids *ids, gid_t gid)
{
    for (size_t i = 0; i < ids->ngroups; i++)
        if (ids->groups[i] == gid)
            return true;
    return ids->gid == gid;
}

/* What the entries say of these ids. */
struct found {
    bool user_named, in_group;
    bool group_has; /* one entry of a group has all that is wanted */
    unsigned user, mask, other;
};

static void look_at(struct found *f, const unsigned char *entry, gid_t gid,
                    const struct mfs_ids *ids, unsigned want)
{
    uint16_t tag = mfs_get_le16(entry);
    unsigned perm = mfs_get_le16(entry + 2) & 7U;
    uint32_t id = mfs_get_le32(entry + 4);

    if (tag == MASK) {
        f->mask = perm;
    } else if (tag == OTHER) {
        f->other = perm;
    } else if (tag == USER && id == ids->uid) {
        f->user_named = true;
        f->user = perm;
    } else if ((tag == GROUP_OBJ && mfs_ids_in_group(ids, gid)) ||
               (tag == GROUP && mfs_ids_in_group(ids, id))) {
        f->in_group = true;
        f->group_has |= (perm & want) == want;
    }
}

bool mfs_acl_permits(const void *acl, size_t len, gid_t gid, const struct mfs_ids *ids,
                     unsigned want)
{
    struct found f = {.mask = 7};

    if (!is_acl(acl, len))
        return false;
    for (size_t at = HEADER_LEN; at < len; at += ENTRY_LEN)
        look_at(&f, (const unsigned char *)acl + at, gid, ids, want);
    if (f.user_named)
        return (f.user & f.mask & want) == want;
    if (f.in_group)
        return f.group_has && (f.mask & want) == want;
    return (f.other & want) == want;
}
