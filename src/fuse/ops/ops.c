/* What the operations have in common, and the table of them. */
#include "fuse/ops/ops.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <linux/capability.h>

#include "host/caps.h"
#include "fuse/mount/device.h"

#define GENERATION 1 /* numbers of inodes are never used again */
/* What stdio and others read and write at once, and what cp --sparse=always makes holes of. Less is
 * slower, more brings nothing. Linux takes a power of two. */

/* By its thread: others may have been sent long ago, by one that went on. */
static bool is_waited_for(enum mfs_fuse_op op)
{
    return op != MFS_OP_READ && op != MFS_OP_WRITE && op != MFS_OP_RELEASE &&
           op != MFS_OP_RELEASEDIR;
}

struct mfs_fuse *mfs_op_count(fuse_req_t req, enum mfs_fuse_op op)
{
    struct mfs_fuse *m = fuse_req_userdata(req);

    mfs_request_begin(op);
    mfs_vfs_act_for((uint32_t)fuse_req_ctx(req)->pid);
    if (is_waited_for(op))
        mfs_recalls_taken(m->recalls, fuse_req_ctx(req)->pid);
    return m;
}

void mfs_op_answer_detached(fuse_req_t req, struct mfs_request *timing, int rc)
{
    struct mfs_fuse *m = fuse_req_userdata(req);

    mfs_request_end(m->requests, timing, rc);
}

struct mfs_fuse *mfs_op_begin(fuse_req_t req, enum mfs_fuse_op op)
{
    struct mfs_fuse *m = mfs_op_count(req, op);

    mfs_lookup_attrs_forget(m->lookup_attrs, fuse_req_ctx(req)->pid);
    return m;
}

void mfs_op_dir_changed(struct mfs_fuse *m, fuse_ino_t nodeid)
{
    mfs_notify_attributes(m->names, mfs_nodeids_ino(nodeid));
}

void mfs_op_names_changed(struct mfs_fuse *m, fuse_ino_t nodeid)
{
    struct mfs_meta *meta = mfs_vfs_meta(m->vfs);
    uint64_t dir = mfs_nodeids_ino(nodeid);

    mfs_op_dir_changed(m, nodeid);
    if (mfs_meta_shows_names(meta, dir) && mfs_nodeids_has_alias(m->nodeids, nodeid))
        mfs_meta_wait_for_names(meta, dir);
}

static void fill_stat(struct mfs_fuse *m, const struct mfs_attr *attr, struct stat *st)
{
    *st = mfs_attr_stat(attr);
    mfs_replied_attrs(m->replied, attr, mfs_clock_mono());
}

void mfs_fill_entry(struct mfs_fuse *m, fuse_ino_t parent, const char *name,
                    const struct mfs_attr *attr, struct fuse_entry_param *e)
{
    *e = (struct fuse_entry_param){
        .ino = attr->ino,
        .generation = GENERATION,
        .attr_timeout = m->timeout,
        .entry_timeout = m->timeout,
    };
    if (S_ISDIR(attr->mode))
        e->ino = mfs_nodeids_lookup(m->nodeids, parent, name, attr->ino);
    /* Not so the attributes: of a nodeid that it does not know yet the kernel can't be told that
     * they have changed. */
    if (attr->leased && mfs_nodeids_lease(m->nodeids, e->ino, parent, name) &&
        mfs_vfs_is_leased(m->vfs, attr))
        e->entry_timeout = MFS_OP_SECONDS(MFS_META_LEASE);
    fill_stat(m, attr, &e->attr);
}

void mfs_reply_rc(fuse_req_t req, int rc)
{
    struct mfs_fuse *m = fuse_req_userdata(req);

    if (rc == -ESTALE)
        mfs_retries_stale(m->retries, fuse_req_ctx(req)->pid);
    fuse_reply_err(req, -rc);
}

void mfs_reply_entry(fuse_req_t req, int rc, fuse_ino_t parent, const char *name,
                     const struct mfs_attr *attr, bool shown)
{
    struct mfs_fuse *m = fuse_req_userdata(req);
    struct fuse_entry_param e;

    if (rc < 0) {
        mfs_reply_rc(req, rc);
        return;
    }
    mfs_fill_entry(m, parent, name, attr, &e);
    if (shown)
        e.attr_timeout = MFS_OP_SECONDS(MFS_META_SHOWN);
    if (fuse_reply_entry(req, &e) < 0)
        mfs_nodeids_forget(m->nodeids, e.ino, 1);
}

bool mfs_op_shows(fuse_req_t req, struct mfs_attr *attr, bool create)
{
    struct mfs_fuse *m = fuse_req_userdata(req);
    pid_t thread = fuse_req_ctx(req)->pid;

    if (m->timeout != 0 || !S_ISREG(attr->mode) ||
        !mfs_recalls_show_new(m->recalls, thread, attr->ino, create))
        return false;
    if (!mfs_recaller_forget_acl(m->recaller, attr->ino) && mfs_vfs_may_show(m->vfs, attr))
        return true;
    mfs_recalls_not_shown_new(m->recalls, thread, attr->ino);
    return false;
}

void mfs_op_shown(struct mfs_fuse *m, pid_t thread, uint64_t ino)
{
    mfs_device_flush(m);
    mfs_recalls_shown_new(m->recalls, thread, ino);
}

/* Likewise, of an inode that the kernel knows. Reads behind a GETATTR of a file whose access time
 * is due show in another GETATTR, or not at all. */
static bool shows_known(struct mfs_fuse *m, struct mfs_attr *attr)
{
    if (m->timeout != 0 || !S_ISREG(attr->mode) || mfs_vfs_atime_is_due(m->vfs, attr))
        return false;
    mfs_recalls_show(m->recalls, attr->ino);
    if (mfs_vfs_may_show(m->vfs, attr))
        return true;
    mfs_recalls_not_shown(m->recalls, attr->ino);
    return false;
}

void mfs_reply_known(fuse_req_t req, int rc, fuse_ino_t nodeid, struct mfs_attr *attr)
{
    struct mfs_fuse *m = fuse_req_userdata(req);
    struct stat st;

    if (rc < 0 || !shows_known(m, attr)) {
        mfs_reply_attr(req, rc, nodeid, attr);
        return;
    }
    fill_stat(m, attr, &st);
    fuse_reply_attr(req, &st, MFS_OP_SECONDS(MFS_META_SHOWN));
    mfs_device_flush(m);
    mfs_recalls_shown(m->recalls, attr->ino);
}

void mfs_reply_unsure(fuse_req_t req, const struct mfs_attr *attr)
{
    struct stat st;

    fill_stat(fuse_req_userdata(req), attr, &st);
    fuse_reply_attr(req, &st, 0);
}

void mfs_reply_attr(fuse_req_t req, int rc, fuse_ino_t nodeid, const struct mfs_attr *attr)
{
    struct mfs_fuse *m = fuse_req_userdata(req);
    double timeout = m->timeout;
    struct stat st;

    if (rc < 0) {
        mfs_reply_rc(req, rc);
        return;
    }
    fill_stat(m, attr, &st);
    if ((nodeid == FUSE_ROOT_ID || mfs_nodeids_is_leased(m->nodeids, nodeid)) &&
        mfs_vfs_is_leased(m->vfs, attr))
        timeout = MFS_OP_SECONDS(MFS_META_LEASE_TIMES);
    fuse_reply_attr(req, &st, timeout);
}

uint32_t mfs_op_drop(fuse_req_t req)
{
    bool ids = mfs_device_is_ours() ? mfs_device_kills() : fuse_req_ctx(req)->uid != 0;

    return ids ? MFS_DROP_ALL : MFS_DROP_CAPS;
}

uint32_t mfs_op_drop_unsaid(fuse_req_t req)
{
    return mfs_caps_has(fuse_req_ctx(req)->pid, CAP_FSETID) ? MFS_DROP_CAPS : MFS_DROP_ALL;
}

struct mfs_owned mfs_op_owned(fuse_req_t req)
{
    uid_t uid = fuse_req_ctx(req)->uid;

    return (struct mfs_owned){.user = uid != 0 && mfs_device_is_ours(), .uid = uid};
}

bool mfs_op_may_as_owner(fuse_req_t req, int capability, const struct mfs_attr *attr)
{
    return mfs_caps_over(fuse_req_ctx(req)->pid, capability, attr->uid, attr->gid);
}

struct mfs_cred mfs_op_cred(fuse_req_t req)
{
    const struct fuse_ctx *c = fuse_req_ctx(req);

    return (struct mfs_cred){.uid = c->uid,
                             .gid = c->gid,
                             .umask = c->umask,
                             .in_group = true,
                             .drop = mfs_op_drop(req)};
}

bool mfs_op_in_group(fuse_req_t req, gid_t gid)
{
    const struct fuse_ctx *c = fuse_req_ctx(req);
    gid_t groups[MFS_OP_GROUPS];
    int n;

    if (c->uid == 0 || c->gid == gid)
        return true;
    n = fuse_req_getgroups(req, MFS_OP_GROUPS, groups);
    for (int i = 0; i < n && i < MFS_OP_GROUPS; i++)
        if (groups[i] == gid)
            return true;
    return false;
}

/* --- reply buffers --------------------------------------------------------------------------- */

struct buffer {
    size_t size;
    char bytes[];
};

static pthread_key_t buffer_key;
static pthread_once_t buffer_once = PTHREAD_ONCE_INIT;

static void make_key(void)
{
    pthread_key_create(&buffer_key, free);
}

void *mfs_op_buffer(size_t size)
{
    struct buffer *b;

    pthread_once(&buffer_once, make_key);
    b = pthread_getspecific(buffer_key);
    if (b == NULL || b->size < size) {
        free(b);
        b = malloc(sizeof *b + size);
        if (b != NULL)
            b->size = size;
        pthread_setspecific(buffer_key, b);
    }
    return b != NULL ? b->bytes : NULL;
}

/* --- the table -------------------------------------------------------------------------------- */

static void want(struct fuse_conn_info *conn, unsigned caps)
{
    conn->want |= conn->capable & caps;
}

static void init(void *arg, struct fuse_conn_info *conn)
{
    struct mfs_fuse *m = arg;

    conn->want = 0;
    want(conn, FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_ATOMIC_O_TRUNC |
                   FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS);
    /* What a link says never changes, and its number is not given to another. */
    want(conn, FUSE_CAP_CACHE_SYMLINKS);
    /* umask only applies where no default ACL does, which the vfs decides. */
    want(conn, FUSE_CAP_DONT_MASK | FUSE_CAP_POSIX_ACL);
    /* Automatic: what a listing brings along costs a key per file (docs/design/metadata.md), for
     * nothing when the program wants names alone. So the kernel asks for it at the beginning, and
     * goes on as long as it is used. */
    want(conn, FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO);
    conn->max_write = MFS_CAPACITY_REQUEST;
    conn->max_readahead = MFS_CAPACITY_REQUEST;
    conn->max_background = 128;
    conn->congestion_threshold = 96;
    conn->time_gran = 1;
    atomic_store(&m->answers, true);
}

const struct fuse_lowlevel_ops mfs_fuse_ops = {
    .init = init,
    .forget = mfs_op_forget,
    .forget_multi = mfs_op_forget_multi,
#define OP(name, NAME, opcode, waits) .name = mfs_op_##name,
#include "fuse/ops.def"
#undef OP
};
