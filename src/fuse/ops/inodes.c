/* Attributes of inodes: getattr, setattr, readlink, statfs. For changes that only the owner may
 * make the kernel goes by attributes that may be old: the caller's rights are looked at again
 * against the present owner and group, and the change is made only while these are still the
 * same. */
#include <errno.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <linux/capability.h>

#include "base/clock.h"
#include "fuse/mount/device.h"
#include "fuse/ops/ops.h"

#define STATFS_BLOCK 4096U
#define OWNED_TRIES  100 /* in each of which another call has changed owner or group */

void mfs_op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct mfs_fuse *m = mfs_op_count(req, MFS_OP_GETATTR);
    fuse_ino_t nodeid = ino;
    struct mfs_attr attr;
    int rc;

    ino = mfs_nodeids_ino(nodeid);
    if (mfs_lookup_attrs_recall(m->lookup_attrs, fuse_req_ctx(req)->pid, ino, &attr) &&
        mfs_vfs_is_current(m->vfs, &attr)) {
        mfs_reply_known(req, 0, nodeid, &attr);
        return;
    }

    /* The kernel names a handle only when a read may pass the end of what it knows (or a seek wants
     * it): the one sign we get of reads that its pages serve. It is after the size. */
    if (fi != NULL) {
        mfs_vfs_accessed(mfs_op_file(fi));
        if (mfs_vfs_size(mfs_op_file(fi), &attr)) {
            mfs_reply_known(req, 0, nodeid, &attr);
            return;
        }
    }
    if (nodeid == FUSE_ROOT_ID && mfs_device_root_hangs(m, fuse_req_ctx(req)->uid) &&
        mfs_replied_last(m->replied, ino, &attr)) {
        mfs_reply_unsure(req, &attr);
        return;
    }
    rc = mfs_vfs_getattr(m->vfs, ino, &attr);
    if (rc == -ESTALE && mfs_replied_recall(m->replied, ino, &attr))
        rc = 0;
    mfs_reply_known(req, rc, nodeid, &attr);
}

static void set_times(const struct stat *st, int to_set, uint32_t *mask, struct mfs_attr *attr)
{
    struct timespec now = mfs_clock_real();

    if (to_set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW)) {
        *mask |= MFS_SET_ATIME;
        attr->atime = to_set & FUSE_SET_ATTR_ATIME_NOW ? now : st->st_atim;
    }
    if (to_set & (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW)) {
        *mask |= MFS_SET_MTIME;
        attr->mtime = to_set & FUSE_SET_ATTR_MTIME_NOW ? now : st->st_mtim;
    }
    if (to_set & FUSE_SET_ATTR_CTIME) {
        *mask |= MFS_SET_CTIME;
        attr->ctime = st->st_ctim;
    }
}

/* Does the kernel ask only the owner for it? Others may write the present time. */
static bool is_owners(int to_set)
{
    return (to_set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) ||
           ((to_set & FUSE_SET_ATTR_ATIME) && !(to_set & FUSE_SET_ATTR_ATIME_NOW)) ||
           ((to_set & FUSE_SET_ATTR_MTIME) && !(to_set & FUSE_SET_ATTR_MTIME_NOW));
}

/* A mode with set-group-ID is for members of the group, whichever that is by now. */
static int look_at_group(fuse_req_t req, struct mfs_fuse *m, uint64_t ino, uint32_t *mode,
                         struct mfs_owned *owned)
{
    struct mfs_attr now;
    int rc;

    if (!owned->user || !(*mode & S_ISGID))
        return 0;
    rc = mfs_vfs_getattr(m->vfs, ino, &now);
    if (rc < 0)
        return rc;
    owned->group = true;
    owned->gid = now.gid;
    if (!mfs_op_in_group(req, now.gid) && !mfs_op_may_as_owner(req, CAP_FSETID, &now))
        *mode &= ~(uint32_t)S_ISGID;
    return 0;
}

/* Is the process one that need not be the owner? Then of its present owner. */
static bool look_at_process(fuse_req_t req, struct mfs_fuse *m, uint64_t ino, uint32_t mask,
                            struct mfs_owned *owned)
{
    int capability = mask & (MFS_SET_UID | MFS_SET_GID) ? CAP_CHOWN : CAP_FOWNER;
    struct mfs_attr now;

    if (mfs_vfs_getattr(m->vfs, ino, &now) < 0 || now.uid == owned->uid ||
        !mfs_op_may_as_owner(req, capability, &now))
        return false;
    owned->uid = now.uid;
    return true;
}

static int set_as_owner(fuse_req_t req, struct mfs_fuse *m, uint64_t ino, uint32_t mask,
                        struct mfs_attr *attr)
{
    struct mfs_owned owned = mfs_op_owned(req);
    const struct mfs_attr want = *attr;
    int rc = -ECANCELED;

    for (int i = 0; i < OWNED_TRIES && rc == -ECANCELED; i++) {
        *attr = want;
        rc = mask & MFS_SET_MODE ? look_at_group(req, m, ino, &attr->mode, &owned) : 0;
        if (rc == 0)
            rc = mfs_vfs_setattr(m->vfs, ino, mask, attr, &owned);
        if (rc == -EPERM && look_at_process(req, m, ino, mask, &owned))
            rc = -ECANCELED; /* once more */
    }
    return rc == -ECANCELED ? -EPERM : rc;
}

static int set(fuse_req_t req, struct mfs_fuse *m, uint64_t ino, int to_set, uint32_t mask,
               struct mfs_attr *attr)
{
    if (mask == 0)
        return mfs_vfs_getattr(m->vfs, ino, attr);
    if (mask & MFS_VFS_SET_SIZE)
        mask |= mfs_op_drop(req);
    if (is_owners(to_set))
        return set_as_owner(req, m, ino, mask, attr);
    return mfs_vfs_setattr(m->vfs, ino, mask, attr, NULL);
}

void mfs_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int to_set,
                    struct fuse_file_info *fi)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_SETATTR);
    struct mfs_attr attr = {
        .mode = st->st_mode, .uid = st->st_uid, .gid = st->st_gid, .size = (uint64_t)st->st_size};
    fuse_ino_t nodeid = ino;
    uint32_t mask = 0;
    int rc;

    (void)fi;
    ino = mfs_nodeids_ino(nodeid);
    mask |= to_set & FUSE_SET_ATTR_MODE ? MFS_SET_MODE : 0;
    mask |= to_set & FUSE_SET_ATTR_UID ? MFS_SET_UID : 0;
    mask |= to_set & FUSE_SET_ATTR_GID ? MFS_SET_GID : 0;
    mask |= to_set & FUSE_SET_ATTR_SIZE ? MFS_VFS_SET_SIZE : 0;
    set_times(st, to_set, &mask, &attr);
    rc = set(req, m, ino, to_set, mask, &attr);
    mfs_reply_attr(req, rc, nodeid, &attr);
}

void mfs_op_readlink(fuse_req_t req, fuse_ino_t ino)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_READLINK);
    char target[MFS_SYMLINK_MAX + 1];
    int n = mfs_vfs_readlink(m->vfs, ino, target, sizeof target - 1);

    if (n < 0) {
        mfs_reply_rc(req, n);
        return;
    }
    target[n] = '\0';
    fuse_reply_readlink(req, target);
}

void mfs_op_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct mfs_fuse *m = mfs_op_begin(req, MFS_OP_STATFS);
    struct mfs_meta_space space;
    struct statvfs st = {
        .f_bsize = STATFS_BLOCK, .f_frsize = STATFS_BLOCK, .f_namemax = MFS_NAME_LEN_MAX};
    uint64_t left;
    int rc = mfs_vfs_statfs(m->vfs, &space);

    (void)ino;
    if (rc < 0) {
        fuse_reply_err(req, -rc);
        return;
    }
    left = space.total > space.used ? space.total - space.used : 0;
    st.f_blocks = space.total / STATFS_BLOCK;
    st.f_bfree = st.f_bavail = left / STATFS_BLOCK;
    /* An inode takes memory as data do, so there may be as many more as a guess of 512 bytes for
     * each allows. */
    st.f_ffree = st.f_favail = left / 512;
    st.f_files = space.files + st.f_ffree;
    fuse_reply_statfs(req, &st);
}
