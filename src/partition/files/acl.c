#include "partition/files/acl.h"

#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "partition/answer.h"
#include "partition/keys.h"

#define ACL_NAME "system.posix_acl_access"
enum { USER_OBJ = 0x01, GROUP_OBJ = 0x04, MASK = 0x10, OTHER = 0x20 }; /* tags of entries */
enum {
    HEAD = 4,
    ENTRY = 8
}; /* bytes before the entries, and of each: tag (2), permissions (2), … */

bool mfs_mode_runs_as_another(uint32_t mode)
{
    return (mode & S_ISUID) || (mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
}

static bool has_mask(const char *acl, size_t n)
{
    for (size_t at = HEAD; at + ENTRY <= n; at += ENTRY)
        if (mfs_get_le16(acl + at) == MASK)
            return true;
    return false;
}

static void set_permissions(char *acl, size_t n, uint32_t mode)
{
    unsigned group = has_mask(acl, n) ? MASK : GROUP_OBJ;

    for (size_t at = HEAD; at + ENTRY <= n; at += ENTRY) {
        unsigned tag = mfs_get_le16(acl + at);
        int shift = tag == USER_OBJ ? 6 : tag == group ? 3 : tag == OTHER ? 0 : -1;

        if (shift >= 0)
            mfs_put_le16(acl + at + 2, (uint16_t)(mode >> shift & 7));
    }
}

void mfs_acl_chmod(struct RedisModuleCtx *ctx, struct mfs_span ino, uint32_t mode)
{
    struct RedisModuleString *name = mfs_redis.CreateString(ctx, ACL_NAME, strlen(ACL_NAME)), *held;
    struct RedisModuleKey *key = mfs_key_open(ctx, 'A', ino, MFS_REDIS_WRITE);
    struct mfs_answer acl = {0};

    held = mfs_key_field(key, name);
    if (held) {
        mfs_answer_span(&acl, mfs_string_span(held));
        set_permissions(acl.p, acl.n, mode);
        mfs_key_set_field(ctx, key, name, acl.p, acl.n);
        mfs_redis.FreeString(ctx, held);
    }
    mfs_answer_fini(&acl);
    mfs_key_close(key);
    mfs_redis.FreeString(ctx, name);
}
