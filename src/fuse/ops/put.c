/* Ioctls: whole small files, made by one request or a few (proto/put.h), and opens that are no
 * readings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/capability.h>

#include "fuse/inside/inside.h"
#include "fuse/kernel/parts.h"
#include "fuse/ops/ops.h"
#include "host/caps.h"
#include "proto/put.h"
#include "proto/reading.h"
#include "vfs/names/access.h"

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

/* The descriptor may be another process' by now, and rights may be fewer than when it was opened:
 * in the kernel's place. As root only what is root's own directory needs no capability. */
static int permits(void *arg, const struct mfs_attr *dir)
{
    fuse_req_t req = arg;
    struct mfs_fuse *m = fuse_req_userdata(req);
    const struct fuse_ctx *c = fuse_req_ctx(req);
    struct mfs_ids ids = {.uid = c->uid, .gid = c->gid};
    gid_t groups[MFS_OP_GROUPS];
    int n, rc = -EACCES;

    if (c->uid == dir->uid) {
        rc = (dir->mode & (S_IWUSR | S_IXUSR)) == (S_IWUSR | S_IXUSR) ? 0 : -EACCES;
    } else if (c->uid != 0) {
        n = fuse_req_getgroups(req, MFS_OP_GROUPS, groups);
        ids.groups = groups;
        ids.ngroups = n > MFS_OP_GROUPS ? MFS_OP_GROUPS : n > 0 ? (size_t)n : 0;
        rc = mfs_vfs_access(m->vfs, dir, &ids, W_OK | X_OK);
    }
    return rc == -EACCES && mfs_op_may_as_owner(req, CAP_DAC_OVERRIDE, dir) ? 0 : rc;
}

/* With what has come in parts before, which has room for all; or NULL. */
static int put(fuse_req_t req, uint64_t dir, const char *in, size_t len, char *before, size_t at)
{
    struct mfs_fuse *m = fuse_req_userdata(req);
    const struct mfs_cred cred = mfs_op_cred(req);
    struct mfs_put_parsed p;
    struct mfs_attr attr;
    struct mfs_vfs_put put;
    int rc = mfs_put_parse(in, len, &p);

    if (rc == 0 && !may_give(req, &p.head))
        rc = -EPERM;
    if (rc == 0 && p.content_len > MFS_PUT_CONTENT - at)
        rc = -EINVAL;
    if (rc < 0)
        return rc;
    if (dir == mfs_nodeids_ino(FUSE_ROOT_ID) && mfs_inside_names(FUSE_ROOT_ID, p.name))
        return -EACCES;
    if (before != NULL)
        memcpy(before + at, p.content, p.content_len);
    attr = (struct mfs_attr){.mode = p.head.mode,
                             .uid = p.head.uid,
                             .gid = p.head.gid,
                             .atime = {p.head.atime, (long)p.head.atime_ns},
                             .mtime = {p.head.mtime, (long)p.head.mtime_ns}};
    put = (struct mfs_vfs_put){.parent = dir,
                               .name = p.name,
                               .buf = before != NULL ? before : p.content,
                               .len = at + p.content_len,
                               .exact = &attr,
                               .exclusive = true,
                               .permits = permits,
                               .arg = req};
    mfs_vfs_put(m->vfs, &put, 1, &cred);
    mfs_notify_attributes(m->names, dir);
    return put.rc;
}

static int take_part(fuse_req_t req, const struct fuse_file_info *fi, uint64_t dir, bool last,
                     const char *in, size_t len)
{
    const struct mfs_fuse *m = fuse_req_userdata(req);
    struct mfs_parts_of of = {.file = fi->fh, .uid = fuse_req_ctx(req)->uid};
    struct mfs_put_part part;
    char *before;
    int rc;

    if (len < sizeof part)
        return -EINVAL;
    memcpy(&part, in, sizeof part);
    of.id = part.id;
    in += sizeof part;
    len -= sizeof part;
    if (!last)
        return mfs_parts_add(m->parts, &of, part.at, in, len);
    before = mfs_parts_take(m->parts, &of, part.at);
    rc = before != NULL ? put(req, dir, in, len, before, (size_t)part.at) : -EAGAIN;
    free(before);
    return rc;
}

/* The directory that the file was made for; 0, or a negative errno. */
static int find_dir(fuse_req_t req, const struct fuse_file_info *fi, uint64_t *dir)
{
    const struct fuse_ctx *c = fuse_req_ctx(req);
    uid_t uid;
    gid_t gid;

    *dir = mfs_vfs_made_in(mfs_op_file(fi), &uid, &gid);
    if (*dir == 0)
        return -ENOTTY;
    return uid == c->uid && gid == c->gid ? 0 : -EPERM;
}

static int make(fuse_req_t req, const struct fuse_file_info *fi, unsigned command, const char *in,
                size_t len)
{
    uint64_t dir;
    int rc = find_dir(req, fi, &dir);

    if (rc < 0)
        return rc;
    if (command == MFS_PUT(0U))
        return put(req, dir, in, len, NULL, 0);
    return take_part(req, fi, dir, command == MFS_PUT_LAST(0U), in, len);
}

void mfs_op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned cmd, void *arg,
                  struct fuse_file_info *fi, unsigned flags, const void *in, size_t len,
                  size_t out_len)
{
    unsigned command = mfs_put_command(cmd);
    bool makes =
        command == MFS_PUT(0U) || command == MFS_PUT_PART(0U) || command == MFS_PUT_LAST(0U);
    int rc = -ENOTTY;

    mfs_op_begin(req, MFS_OP_IOCTL);
    (void)ino;
    (void)arg;
    (void)out_len;
    if (cmd == MFS_NO_READING && !(flags & FUSE_IOCTL_DIR)) {
        mfs_vfs_does_not_count(mfs_op_file(fi));
        rc = 0;
    } else if (makes && !(flags & FUSE_IOCTL_DIR) && in != NULL) {
        rc = make(req, fi, command, in, len);
    }
    if (rc < 0)
        fuse_reply_err(req, -rc);
    else
        fuse_reply_ioctl(req, 0, NULL, 0);
}
