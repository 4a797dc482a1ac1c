/* Ioctls: whole small files, made by one request (proto/put.h), and opens that are no readings. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <linux/capability.h>

#include "fuse/ops/ops.h"
#include "host/caps.h"
#include "proto/put.h"
#include "proto/reading.h"

#define NS_END 1000000000U

/* Numbers of users are those that this process knows: who is in a name space of its own is refused
 * where another owner than itself is asked for. */
static bool may_give(fuse_req_t req, const struct mfs_put_request *r)
{
    const struct fuse_ctx *c = fuse_req_ctx(req);
    bool own_user = r->uid == UINT32_MAX || r->uid == c->uid;
    bool own_group = r->gid == UINT32_MAX || r->gid == c->gid;

    if (own_user && (own_group || (c->uid != 0 && mfs_op_in_group(req, r->gid))))
        return true;
    return mfs_caps_has(c->pid, CAP_CHOWN);
}

static int check(const struct mfs_put_request *r, const char *rest, size_t len)
{
    if (r->name_len == 0 || r->name_len > len || (r->mode & ~(uint32_t)(0777 | S_ISVTX)) != 0 ||
        r->atime_ns >= NS_END || r->mtime_ns >= NS_END)
        return -EINVAL;
    if (memchr(rest, '/', r->name_len) != NULL || memchr(rest, '\0', r->name_len) != NULL)
        return -EINVAL;
    if (rest[0] == '.' && (r->name_len == 1 || (r->name_len == 2 && rest[1] == '.')))
        return -EEXIST;
    return r->name_len > MFS_NAME_LEN_MAX ? -ENAMETOOLONG : 0;
}

static int put(fuse_req_t req, struct mfs_fuse *m, uint64_t dir, const char *in, size_t len)
{
    const struct mfs_cred cred = mfs_op_cred(req);
    char name[MFS_NAME_LEN_MAX + 1];
    struct mfs_put_request r;
    struct mfs_attr attr;
    struct mfs_vfs_put put;
    int rc;

    if (len < sizeof r)
        return -EINVAL;
    memcpy(&r, in, sizeof r);
    rc = check(&r, in + sizeof r, len - sizeof r);
    if (rc == 0 && !may_give(req, &r))
        rc = -EPERM;
    if (rc < 0)
        return rc;
    attr = (struct mfs_attr){.mode = r.mode,
                             .uid = r.uid,
                             .gid = r.gid,
                             .atime = {r.atime, (long)r.atime_ns},
                             .mtime = {r.mtime, (long)r.mtime_ns}};
    memcpy(name, in + sizeof r, r.name_len);
    name[r.name_len] = '\0';
    put = (struct mfs_vfs_put){.parent = dir,
                               .name = name,
                               .buf = in + sizeof r + r.name_len,
                               .len = len - sizeof r - r.name_len,
                               .exact = &attr,
                               .exclusive = true};
    mfs_vfs_put(m->vfs, &put, 1, &cred);
    mfs_notify_attributes(m->names, dir);
    return put.rc;
}

void mfs_op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned cmd, void *arg,
                  struct fuse_file_info *fi, unsigned flags, const void *in, size_t len,
                  size_t out_len)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_IOCTL);
    bool no_reading = cmd == MFS_NO_READING && !(flags & FUSE_IOCTL_DIR);
    uint64_t dir = mfs_put_is(cmd) && !(flags & FUSE_IOCTL_DIR) && in != NULL
                       ? mfs_vfs_made_in(mfs_op_file(fi))
                       : 0;
    int rc = dir != 0 ? put(req, m, dir, in, len) : no_reading ? 0 : -ENOTTY;

    (void)ino;
    (void)arg;
    (void)out_len;
    if (no_reading)
        mfs_vfs_does_not_count(mfs_op_file(fi));
    if (rc < 0)
        fuse_reply_err(req, -rc);
    else
        fuse_reply_ioctl(req, 0, NULL, 0);
}
