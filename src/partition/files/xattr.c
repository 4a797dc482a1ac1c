/* Extended attributes: a hash name → value beside the inode. The inode's flags tell which of the
 * names that the kernel asks for all the time are there. */
#include "partition/commands.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "partition/files/acl.h"
#include "partition/files/leases.h"
#include "partition/inode.h"

enum { INO = 1, NAME };
enum { VALUE = 3, HOW, FLAG, TIME, OWNER, SID, KEEP, PERM, DROP_SGID }; /* of mfs_setxattr */
enum { REMOVE_FLAG = 3, REMOVE_TIME, REMOVE_OWNER, REMOVE_SID };        /* of mfs_removexattr */

/* The attribute is there now, or not any more: what the record says of that. */
static void after(const struct mfs_request *r, struct mfs_inode *i, int64_t flag, bool present,
                  struct mfs_span time)
{
    bool any = present || mfs_key_exists(r->ctx, 'A', mfs_request_arg(r, INO));
    unsigned char flags = (unsigned char)i->rec[MFS_REC_FLAGS];

    flags = (unsigned char)(present ? flags | flag : flags & ~flag);
    i->rec[MFS_REC_FLAGS] = (char)(any ? flags | MFS_ATTR_XATTR : flags & ~MFS_ATTR_XATTR);
    memcpy(i->rec + MFS_REC_CTIME, time.p, MFS_TIME_LEN);
    mfs_key_changed(i->key);
}

/* Whether the file has got privileges (1 byte), the record, and a regular file's other holders. */
static int answer_changed(const struct mfs_request *r, const struct mfs_inode *i, bool gives,
                          struct mfs_span sid)
{
    struct mfs_answer a = {0};

    mfs_redis.ReplicateVerbatim(r->ctx);
    mfs_answer_byte(&a, gives);
    mfs_answer_add(&a, i->rec, i->n);
    if (mfs_inode_type(i) == MFS_TYPE_FILE)
        mfs_lease_others(r->ctx, mfs_request_arg(r, INO), sid, gives, &a);
    return mfs_answer_send(&a, r->ctx);
}

static bool has_name(const struct mfs_request *r)
{
    struct RedisModuleKey *key = mfs_key_open(r->ctx, 'A', mfs_request_arg(r, INO), MFS_REDIS_READ);
    struct RedisModuleString *value = mfs_key_field(key, r->argv[NAME]);

    if (value)
        mfs_redis.FreeString(r->ctx, value);
    mfs_key_close(key);
    return value != NULL;
}

static void drop_name(const struct mfs_request *r)
{
    struct RedisModuleKey *key =
        mfs_key_open(r->ctx, 'A', mfs_request_arg(r, INO), MFS_REDIS_WRITE);

    mfs_key_drop_field(key, r->argv[NAME]);
    mfs_key_close(key);
}

static void put_name(const struct mfs_request *r)
{
    struct RedisModuleKey *key =
        mfs_key_open(r->ctx, 'A', mfs_request_arg(r, INO), MFS_REDIS_WRITE);
    struct mfs_span value = mfs_request_arg(r, VALUE);

    mfs_key_set_field(r->ctx, key, r->argv[NAME], value.p, value.n);
    mfs_key_close(key);
}

/* 0 or an errno. */
static int refused(const struct mfs_request *r, const struct mfs_inode *i)
{
    char how = mfs_request_arg(r, HOW).p[0];
    bool there = how != 'a' && has_name(r);

    if (!i->rec)
        return ESTALE;
    if (mfs_inode_differs(i, MFS_REC_UID, r, OWNER))
        return EPERM;
    if (mfs_request_int(r, FLAG) == MFS_ATTR_DEFACL && mfs_inode_type(i) != MFS_TYPE_DIR)
        return EACCES;
    return how == 'c' && there ? EEXIST : how == 'r' && !there ? ENODATA : 0;
}

/* An access ACL sets the mode's permission bits; whether the file runs as another then. */
static bool take_mode(const struct mfs_request *r, struct mfs_inode *i)
{
    uint32_t mode = mfs_rec_u32(i->rec, MFS_REC_MODE);

    mode = (mode & ~0777U) | ((uint32_t)mfs_request_int(r, PERM) & 0777);
    if (mfs_request_arg(r, DROP_SGID).p[0] == '1')
        mode &= ~(uint32_t)S_ISGID;
    mfs_rec_put_u32(i->rec, MFS_REC_MODE, mode);
    return mfs_mode_runs_as_another(mode);
}

static int setxattr(const struct mfs_request *r, struct mfs_inode *i)
{
    bool keep = r->argc <= KEEP || mfs_request_arg(r, KEEP).p[0] != '0', gives;
    int64_t flag = mfs_request_int(r, FLAG);
    int why = refused(r, i);

    if (why)
        return mfs_request_fail(r, why, "the attribute is refused");
    if (keep)
        put_name(r);
    else
        drop_name(r);
    gives = keep && flag == MFS_ATTR_SECCAPS;
    if (r->argc > PERM)
        gives = take_mode(r, i);
    gives = gives && mfs_inode_type(i) == MFS_TYPE_FILE;
    if (gives) /* a new version, so that no client goes on with what was known before */
        mfs_rec_add_i64(i->rec, MFS_REC_VERSION, 1);
    after(r, i, flag, keep, mfs_request_arg(r, TIME));
    return answer_changed(r, i, gives, mfs_request_arg(r, SID));
}

static bool is_flag(int64_t flag)
{
    return flag == 0 || flag == MFS_ATTR_ACL || flag == MFS_ATTR_DEFACL || flag == MFS_ATTR_SECCAPS;
}

/* mfs_setxattr ino name value how flag time owner sid [keep perm drop_sgid]; how: 'c' must not
 * exist, 'r' must exist, 'a' any. '\1' if the file has got privileges, else '\0', the new record,
 * and behind a regular file's the other holders of a lease, with '\1' openers, too. EPERM: the
 * owner is not this one (empty: any). flag is the inode's flag of this name or 0. The last three
 * come with an access ACL: whether it says more than the mode does, the mode's new permission bits,
 * whether set-group-ID goes. */
int mfs_command_setxattr(const struct mfs_request *r)
{
    struct mfs_inode i;
    int rc;

    if (!mfs_request_has(r, TIME, MFS_TIME_LEN) || !is_flag(mfs_request_int(r, FLAG)))
        return mfs_request_fail(r, EINVAL, "not a flag and a time");
    i = mfs_inode_open(r->ctx, mfs_request_arg(r, INO), MFS_REDIS_WRITE);
    rc = setxattr(r, &i);
    mfs_inode_close(&i);
    return rc;
}

static int removexattr(const struct mfs_request *r, struct mfs_inode *i)
{
    if (!i->rec)
        return mfs_request_fail(r, ESTALE, "no inode");
    if (mfs_inode_differs(i, MFS_REC_UID, r, REMOVE_OWNER))
        return mfs_request_fail(r, EPERM, "another owner");
    if (!has_name(r))
        return mfs_request_fail(r, ENODATA, "no attribute");
    drop_name(r);
    after(r, i, mfs_request_int(r, REMOVE_FLAG), false, mfs_request_arg(r, REMOVE_TIME));
    return answer_changed(r, i, false, mfs_request_arg(r, REMOVE_SID));
}

/* mfs_removexattr ino name flag time owner sid: as mfs_setxattr. */
int mfs_command_removexattr(const struct mfs_request *r)
{
    struct mfs_inode i;
    int rc;

    if (!mfs_request_has(r, REMOVE_TIME, MFS_TIME_LEN) || !is_flag(mfs_request_int(r, REMOVE_FLAG)))
        return mfs_request_fail(r, EINVAL, "not a flag and a time");
    i = mfs_inode_open(r->ctx, mfs_request_arg(r, INO), MFS_REDIS_WRITE);
    rc = removexattr(r, &i);
    mfs_inode_close(&i);
    return rc;
}
