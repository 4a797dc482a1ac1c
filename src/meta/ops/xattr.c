/* Extended attributes and what an access ACL means for the mode. */
#include "meta/deferred/unknown_outcomes.h"
#include "meta/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/bytes.h"
#include "meta/call.h"
#include "meta/coherence/leases.h"
#include "meta/coherence/notices.h"
#include "meta/coherence/revoke.h"
#include "meta/hints.h"
#include "meta/ops/ops.h"

#define ACL_ACCESS  "system.posix_acl_access"
#define ACL_DEFAULT "system.posix_acl_default"
#define CAPABILITY  "security.capability"

/* The kernel's form of an ACL: u32 version = 2, then entries of u16 tag, u16 perm, u32 id. */
#define ACL_VERSION 2
enum {
    ACL_USER_OBJ = 1,
    ACL_USER = 2,
    ACL_GROUP_OBJ = 4,
    ACL_GROUP = 8,
    ACL_MASK = 16,
    ACL_OTHER = 32
};

struct acl_mode {
    uint32_t perm; /* the mode's nine bits that go with it */
    bool extended; /* says more than the mode can */
};

static int read_acl(const char *p, size_t n, struct acl_mode *out)
{
    uint32_t perm[ACL_OTHER + 1] = {0};
    unsigned seen = 0;

    if (n < 4 || (n - 4) % 8 || mfs_get_le32(p) != ACL_VERSION)
        return -EINVAL;
    for (size_t at = 4; at < n; at += 8) {
        unsigned tag = (unsigned char)p[at] | (unsigned)(unsigned char)p[at + 1] << 8;

        if (!tag || tag > ACL_OTHER || (tag & (tag - 1)))
            return -EINVAL;
        if ((seen & tag) && tag != ACL_USER && tag != ACL_GROUP)
            return -EINVAL;
        seen |= tag;
        perm[tag] = (unsigned char)p[at + 2] & 7U;
    }
    if ((seen & (ACL_USER_OBJ | ACL_GROUP_OBJ | ACL_OTHER)) !=
        (ACL_USER_OBJ | ACL_GROUP_OBJ | ACL_OTHER))
        return -EINVAL;
    if ((seen & (ACL_USER | ACL_GROUP)) && !(seen & ACL_MASK))
        return -EINVAL;
    out->extended = seen & (ACL_USER | ACL_GROUP | ACL_MASK);
    out->perm = perm[ACL_USER_OBJ] << 6 | perm[ACL_OTHER] |
                perm[seen & ACL_MASK ? ACL_MASK : ACL_GROUP_OBJ] << 3;
    return 0;
}

/* The inode flag that tells of this name. */
static uint32_t flag_of(const char *name)
{
    if (!strcmp(name, ACL_ACCESS))
        return MFS_ATTR_ACL;
    if (!strcmp(name, ACL_DEFAULT))
        return MFS_ATTR_DEFACL;
    if (!strcmp(name, CAPABILITY))
        return MFS_ATTR_SECCAPS;
    return 0;
}

const char *mfs_xattr_how(int flags)
{
    if (flags & XATTR_CREATE)
        return "c";
    return flags & XATTR_REPLACE ? "r" : "a";
}

static int check_name(const char *name)
{
    size_t len = strlen(name);

    if (!len || len > MFS_NAME_LEN_MAX)
        return -ERANGE;
    return 0;
}

/* Nobody must go on telling of an old ACL. `answer`: whether the file has got privileges (1 byte),
 * record, and of a regular file the sessions to be told. */
static int take_changed(struct mfs_meta *meta, uint64_t ino, struct mfs_bytes answer, int64_t asked)
{
    struct mfs_bytes record, others;
    struct mfs_attr attr;
    int rc;

    if (!answer.p || answer.n < 1)
        return -EIO;
    record = (struct mfs_bytes){answer.p + 1, answer.n - 1};
    rc = mfs_meta_take(meta, ino, record, asked, &attr);
    if (rc)
        return rc;
    others = mfs_record_rest(&record);
    if (S_ISREG(attr.mode) && answer.p[0])
        mfs_leases_granted_to(meta, ino, attr.version, others);
    else if (S_ISREG(attr.mode))
        mfs_leases_file_set(meta, &attr, asked, &others, 1);
    else if (S_ISDIR(attr.mode))
        mfs_leases_changed(meta, ino);
    return 0;
}

static int run(struct mfs_meta *meta, uint64_t ino, struct mfs_call *c)
{
    int64_t asked = mfs_clock_mono();
    int rc = mfs_call_run(meta, c, mfs_placement_home(ino));

    if (!rc)
        rc = take_changed(meta, ino, mfs_call_text(c), asked);
    mfs_call_fini(c);
    mfs_outcomes_attributes(meta, ino, rc);
    return rc;
}

int mfs_meta_setxattr(struct mfs_meta *meta, uint64_t ino, const char *name, const void *value,
                      size_t len, int flags, bool drop_sgid, const struct mfs_owned *owned)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino), sid = mfs_ino_arg(meta->sid);
    struct mfs_time_arg time = mfs_now_arg();
    uint32_t flag = flag_of(name);
    struct acl_mode acl = {0};
    struct mfs_call c;
    int rc = check_name(name);

    if (rc)
        return rc;
    if (len > MFS_XATTR_SIZE_MAX)
        return -E2BIG;
    if (flag == MFS_ATTR_ACL || flag == MFS_ATTR_DEFACL) {
        if (len <= 4) /* an ACL without entries is none */
            return mfs_meta_removexattr(meta, ino, name, owned);
        rc = read_acl(value, len, &acl);
        if (rc)
            return rc;
    }
    mfs_call_command(&c, "mfs_setxattr");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_str(&c.args, name);
    mfs_args_bin(&c.args, value, len);
    mfs_args_str(&c.args, mfs_xattr_how(flags));
    mfs_args_int(&c.args, flag);
    mfs_args_bin(&c.args, time.b, sizeof time.b);
    mfs_owned_arg(&c, owned && owned->user, owned ? owned->uid : 0);
    mfs_args_bin(&c.args, sid.b, sizeof sid.b);
    if (flag == MFS_ATTR_ACL) {
        mfs_args_str(&c.args, acl.extended ? "1" : "0");
        mfs_args_int(&c.args, acl.perm);
        mfs_args_str(&c.args, drop_sgid ? "1" : "0");
    }
    return run(meta, ino, &c);
}

int mfs_meta_removexattr(struct mfs_meta *meta, uint64_t ino, const char *name,
                         const struct mfs_owned *owned)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino), sid = mfs_ino_arg(meta->sid);
    struct mfs_time_arg time = mfs_now_arg();
    uint32_t flag = flag_of(name);
    struct mfs_call c;
    int rc = check_name(name);

    if (rc)
        return rc;
    mfs_call_command(&c, "mfs_removexattr");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_str(&c.args, name);
    mfs_args_int(&c.args, flag);
    mfs_args_bin(&c.args, time.b, sizeof time.b);
    mfs_owned_arg(&c, owned && owned->user, owned ? owned->uid : 0);
    mfs_args_bin(&c.args, sid.b, sizeof sid.b);
    rc = run(meta, ino, &c);
    if (rc == -ENODATA && (flag == MFS_ATTR_ACL || flag == MFS_ATTR_DEFACL))
        rc = 0;
    return rc;
}

/* Is it known under a lease of a file that it has no such attribute? */
static bool is_absent(struct mfs_meta *meta, uint64_t ino, const char *name)
{
    uint32_t flag = flag_of(name);
    struct mfs_attr attr;

    return mfs_leases_attr(meta, ino, &attr) &&
           (!(attr.flags & MFS_ATTR_XATTR) || (flag && !(attr.flags & flag)));
}

/* An empty answer may mean that there is no such inode. */
static ssize_t absent(struct mfs_meta *meta, uint64_t ino, ssize_t otherwise)
{
    struct mfs_attr attr;
    int rc = mfs_meta_getattr(meta, ino, &attr);

    return rc ? rc : otherwise;
}

ssize_t mfs_meta_getxattr(struct mfs_meta *meta, uint64_t ino, const char *name, void *buf,
                          size_t cap)
{
    char key[MFS_KEY_INO_LEN];
    struct mfs_bytes value;
    struct mfs_call c;
    ssize_t rc = check_name(name);

    if (rc)
        return rc;
    if (is_absent(meta, ino, name))
        return -ENODATA;
    mfs_key_ino(key, 'A', ino);
    mfs_call_command(&c, "HGET");
    mfs_args_bin(&c.args, key, sizeof key);
    mfs_args_str(&c.args, name);
    c.cmd.idempotent = true;
    rc = mfs_call_run(meta, &c, mfs_placement_home(ino));
    if (rc)
        goto out;
    value = mfs_call_text(&c);
    if (!value.p)
        rc = absent(meta, ino, -ENODATA);
    else if (cap && value.n > cap)
        rc = -ERANGE;
    else
        rc = (ssize_t)value.n;
    if (value.p && rc > 0 && cap)
        memcpy(buf, value.p, value.n);
out:
    mfs_call_fini(&c);
    return rc;
}

/* A list of names that grows: cut off at `cap`, but counted to its end. */
struct names {
    char *buf;
    size_t cap, n;
};

static void add_name(struct names *l, const char *name, size_t len)
{
    if (l->n + len + 1 <= l->cap) {
        memcpy(l->buf + l->n, name, len);
        l->buf[l->n + len] = 0;
    }
    l->n += len + 1;
}

static void add_hints(struct names *l, const struct mfs_attr *attr)
{
    const struct mfs_hint_kind *kind;

    for (size_t i = 0; (kind = mfs_hint_kind_at(i)); i++)
        if (mfs_hint_is_listed(kind, attr))
            add_name(l, kind->name, strlen(kind->name));
}

static ssize_t listed(const struct names *l)
{
    return l->cap && l->n > l->cap ? -ERANGE : (ssize_t)l->n;
}

static int add_kept(struct names *l, const struct mfs_reply *keys)
{
    size_t n = mfs_reply_count(keys);

    for (size_t i = 0; i < n; i++) {
        struct mfs_bytes name = mfs_reply_bytes(mfs_reply_at(keys, i));

        if (!name.p)
            return -EIO;
        add_name(l, name.p, name.n);
    }
    return 0;
}

ssize_t mfs_meta_listxattr(struct mfs_meta *meta, uint64_t ino, char *buf, size_t cap)
{
    struct names l = {buf, cap, 0};
    uint32_t home = mfs_placement_home(ino);
    int64_t asked = mfs_clock_mono();
    char key[MFS_KEY_INO_LEN], record_key[MFS_KEY_INO_LEN];
    struct mfs_calls calls = {.n = 0};
    struct mfs_bytes record;
    struct mfs_attr attr;
    int rc;

    if (mfs_leases_attr(meta, ino, &attr) && !(attr.flags & MFS_ATTR_XATTR)) {
        add_hints(&l, &attr);
        return listed(&l);
    }
    mfs_key_ino(key, 'A', ino);
    mfs_key_ino(record_key, 'I', ino);
    mfs_args_bin(&mfs_calls_add(&calls, "HKEYS", home)->args, key, sizeof key);
    mfs_args_bin(&mfs_calls_add(&calls, "GET", home)->args, record_key, sizeof record_key);
    calls.call[0].cmd.idempotent = calls.call[1].cmd.idempotent = true;
    rc = mfs_calls_run(meta, &calls);
    record = mfs_call_text(&calls.call[1]);
    if (!rc)
        rc = record.p ? mfs_meta_take(meta, ino, record, asked, &attr) : -ESTALE;
    if (!rc)
        rc = add_kept(&l, calls.call[0].cmd.reply);
    mfs_calls_fini(&calls);
    if (rc)
        return rc;
    add_hints(&l, &attr);
    return listed(&l);
}
