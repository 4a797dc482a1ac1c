/* Attributes of inodes. */
#include "partition/commands.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "partition/files/acl.h"
#include "partition/files/files.h"
#include "partition/files/leases.h"
#include "partition/inode.h"

/* Of mfs_setattr. */
enum { INO = 1, MASK, MODE, UID, GID, ATIME, MTIME, CTIME, SID, OWNER, GROUP, HINTS, HOW, TTL };

bool mfs_file_is_copy_up(const char *rec)
{
    return mfs_rec_u32(rec, MFS_REC_UID) == 0 && mfs_rec_u32(rec, MFS_REC_NLINK) == 0 &&
           (rec[MFS_REC_FLAGS] & MFS_ATTR_TMPFILE);
}

/* What goes of the file's privileges: a new owner gets none with it. */
static int64_t dropped(const struct mfs_inode *i, int64_t mask)
{
    const int64_t both = MFS_SET_UID | MFS_SET_GID;

    if ((mask & both) == both && mfs_file_is_copy_up(i->rec))
        return 0;
    return mask & both ? MFS_DROP_ALL : mask & MFS_DROP_ALL;
}

static void set_mode(const struct mfs_request *r, struct mfs_inode *i)
{
    uint32_t mode = mfs_rec_u32(i->rec, MFS_REC_MODE);

    mode = (mode & ~07777U) | ((uint32_t)mfs_request_int(r, MODE) & 07777);
    mfs_rec_put_u32(i->rec, MFS_REC_MODE, mode);
    if (i->rec[MFS_REC_FLAGS] & MFS_ATTR_ACL)
        mfs_acl_chmod(r->ctx, mfs_request_arg(r, INO), mode);
    if (mfs_inode_type(i) == MFS_TYPE_FILE && mfs_mode_runs_as_another(mode))
        mfs_rec_add_i64(i->rec, MFS_REC_VERSION, 1);
}

static void set_mtime(const struct mfs_request *r, struct mfs_inode *i)
{
    memcpy(i->rec + MFS_REC_MTIME, mfs_request_arg(r, MTIME).p, MFS_TIME_LEN);
    if (mfs_inode_type(i) == MFS_TYPE_DIR) {
        i->rec[MFS_REC_FLAGS] |= MFS_RECORD_MTIME;
        mfs_rec_count_cut(i->rec);
    }
}

/* One of them; the others stay. */
static void set_hint(const struct mfs_request *r, struct mfs_inode *i, int64_t mask)
{
    uint32_t hints = (uint32_t)mfs_request_int(r, HINTS), now = mfs_rec_u32(i->rec, MFS_REC_RDEV);
    uint32_t bits = mfs_set_bits(mask);

    mfs_rec_put_u32(i->rec, MFS_REC_RDEV, (now & ~bits) | (hints & bits));
    if (mask & MFS_SET_TTL)
        mfs_rec_put_i64(i->rec, MFS_REC_STORED, mfs_request_int(r, TTL));
    if (mask & (MFS_SET_TTL | MFS_SET_READS))
        mfs_inode_list_ttl(r->ctx, mfs_request_arg(r, INO), i->rec);
}

static void set(const struct mfs_request *r, struct mfs_inode *i, int64_t mask)
{
    int64_t drop = dropped(i, mask);

    if (drop)
        mfs_inode_drop(r->ctx, mfs_request_arg(r, INO), i, drop);
    if (mask & MFS_SET_MODE)
        set_mode(r, i);
    if (mask & MFS_SET_UID)
        mfs_rec_put_u32(i->rec, MFS_REC_UID, (uint32_t)mfs_request_int(r, UID));
    if (mask & MFS_SET_GID)
        mfs_rec_put_u32(i->rec, MFS_REC_GID, (uint32_t)mfs_request_int(r, GID));
    if (mask & MFS_SET_ATIME)
        memcpy(i->rec + MFS_REC_ATIME, mfs_request_arg(r, ATIME).p, MFS_TIME_LEN);
    if (mask & MFS_SET_MTIME)
        set_mtime(r, i);
    if (mask & MFS_SET_HINTS)
        set_hint(r, i, mask);
    memcpy(i->rec + MFS_REC_CTIME, mfs_request_arg(r, CTIME).p, MFS_TIME_LEN);
    mfs_key_changed(i->key);
}

static bool has_hint(const char *rec, int64_t mask)
{
    if (mask & MFS_SET_TTL)
        return mfs_rec_i64(rec, MFS_REC_STORED) > 0;
    return mfs_rec_u32(rec, MFS_REC_RDEV) & mfs_set_bits(mask);
}

/* May it get this hint, in place of the one that it has? 0 or an errno. Those of a file are what it
 * was made by, but for the pin. */
static int hint_refused(const struct mfs_request *r, const struct mfs_inode *i, int64_t mask)
{
    char how = r->argc > HOW && mfs_request_arg(r, HOW).n ? mfs_request_arg(r, HOW).p[0] : 0;
    int64_t ttl = mask & MFS_SET_TTL && r->argc > TTL ? mfs_request_int(r, TTL) : 0;
    bool there = has_hint(i->rec, mask);

    if (mfs_inode_type(i) != MFS_TYPE_DIR &&
        !(mfs_inode_type(i) == MFS_TYPE_FILE && (mask & MFS_SET_HINTS) == MFS_SET_PIN))
        return EOPNOTSUPP;
    if (ttl < 0 || ttl > MFS_TTL_MAX || ((mask & MFS_SET_TTL) && r->argc <= TTL))
        return EINVAL;
    if (how == 'c')
        return there ? EEXIST : 0;
    if (how == 'r')
        return there ? 0 : ENODATA;
    return how == 'a' ? 0 : EINVAL;
}

static int setattr(const struct mfs_request *r, struct mfs_inode *i)
{
    int64_t mask = mfs_request_int(r, MASK);
    struct mfs_answer a = {0};
    int why;

    if (!i->rec)
        return mfs_request_fail(r, ESTALE, "no inode");
    if (mfs_inode_differs(i, MFS_REC_UID, r, OWNER))
        return mfs_request_fail(r, EPERM, "another owner");
    if (mfs_inode_differs(i, MFS_REC_GID, r, GROUP))
        return mfs_request_fail(r, ECANCELED, "another group");
    why = mask & MFS_SET_HINTS ? hint_refused(r, i, mask) : 0;
    if (why)
        return mfs_request_fail(r, why, "the hint is refused");
    set(r, i, mask);
    mfs_redis.ReplicateVerbatim(r->ctx);
    mfs_answer_add(&a, i->rec, i->n);
    if (mfs_inode_type(i) == MFS_TYPE_FILE)
        mfs_lease_others(r->ctx, mfs_request_arg(r, INO), mfs_request_arg(r, SID), false, &a);
    return mfs_answer_send(&a, r->ctx);
}

/* mfs_setattr ino mask mode uid gid atime mtime ctime sid owner group [hints how [ttl]]: what the
 * mask (MFS_SET_*, MFS_DROP_*) names; one hint of a directory, by `how` as mfs_setxattr. The new
 * record, and behind a regular file's other holders of a lease. EPERM, ECANCELED: owner, or group,
 * is not this one (empty: any). */
int mfs_command_setattr(const struct mfs_request *r)
{
    struct mfs_inode i;
    int rc;

    for (int at = ATIME; at <= CTIME; at++)
        if (!mfs_request_has(r, at, MFS_TIME_LEN))
            return mfs_request_fail(r, EINVAL, "not a time");
    i = mfs_inode_open(r->ctx, mfs_request_arg(r, INO), MFS_REDIS_WRITE);
    rc = setattr(r, &i);
    mfs_inode_close(&i);
    return rc;
}

enum { CTIME_TIME = 2, CTIME_SID }; /* of mfs_ctime */

static int set_ctime(const struct mfs_request *r, struct mfs_inode *i)
{
    struct mfs_span ino = mfs_request_arg(r, INO), sid = mfs_request_arg(r, CTIME_SID);
    struct mfs_span time = mfs_request_arg(r, CTIME_TIME);
    bool file = mfs_inode_type(i) == MFS_TYPE_FILE;
    struct mfs_answer a = {0};

    if (mfs_rec_is_later(time.p, i->rec + MFS_REC_CTIME)) {
        memcpy(i->rec + MFS_REC_CTIME, time.p, MFS_TIME_LEN);
        mfs_key_changed(i->key);
    }
    mfs_answer_byte(&a, file && mfs_lease_add(r->ctx, ino, sid));
    mfs_answer_add(&a, i->rec, i->n);
    if (file)
        mfs_lease_others(r->ctx, ino, sid, false, &a);
    mfs_redis.ReplicateVerbatim(r->ctx);
    return mfs_answer_send(&a, r->ctx);
}

/* mfs_ctime ino time sid: never backwards. Whether the session has a lease of a regular file's
 * attributes ('\1' or '\0'), record, and the other holders; nil without an inode. */
int mfs_command_ctime(const struct mfs_request *r)
{
    struct mfs_inode i;
    int rc;

    if (!mfs_request_has(r, CTIME_TIME, MFS_TIME_LEN))
        return mfs_request_fail(r, EINVAL, "not a time");
    i = mfs_inode_open(r->ctx, mfs_request_arg(r, INO), MFS_REDIS_WRITE);
    rc = i.rec ? set_ctime(r, &i) : mfs_redis.ReplyWithNull(r->ctx);
    mfs_inode_close(&i);
    return rc;
}
