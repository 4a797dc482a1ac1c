/* Attributes of inodes, and the size, which is one of them to its callers. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "vfs/vnode/file.h"
#include "vfs/content/privileges.h"
#include "vfs/content/tail.h"
#include "vfs/content/truncate.h"

int mfs_vfs_getattr(struct mfs_vfs *vfs, uint64_t ino, struct mfs_attr *attr)
{
    int rc = mfs_meta_getattr_leased(vfs->meta, ino, attr);

    if (rc == 0)
        mfs_vfs_overlay_attr(vfs, attr);
    return rc;
}

bool mfs_vfs_size(struct mfs_file *f, struct mfs_attr *attr)
{
    if (!mfs_vnode_attr(f->node, attr))
        return false;
    mfs_vfs_overlay_attr(f->node->vfs, attr);
    return true;
}

bool mfs_vfs_is_current(struct mfs_vfs *vfs, const struct mfs_attr *attr)
{
    struct mfs_vnode *v = S_ISREG(attr->mode) ? mfs_vnode_find(vfs, attr->ino) : NULL;
    struct mfs_attr known;
    struct mfs_dirty *d;
    bool current;

    if (v == NULL)
        return true;
    d = atomic_load(&v->dirty);
    current = mfs_vnode_attr(v, &known) && known.version == attr->version &&
              (d == NULL || !mfs_dirty_any(d));
    mfs_vnode_put(v);
    return current;
}

/* Of a file with set-user-ID or set-group-ID a write may take these away, of which the kernel does
 * not know. */
bool mfs_vfs_may_show(struct mfs_vfs *vfs, struct mfs_attr *attr)
{
    struct mfs_attr now;

    if (atomic_load(&vfs->recall) == NULL || !mfs_meta_may_show(vfs->meta, attr->ino, &now) ||
        !S_ISREG(now.mode) || (now.mode & (S_ISUID | S_ISGID)) || !mfs_vfs_is_current(vfs, &now))
        return false;
    mfs_vfs_overlay_attr(vfs, &now);
    *attr = now;
    return true;
}

bool mfs_vfs_atime_is_due(struct mfs_vfs *vfs, const struct mfs_attr *attr)
{
    return !vfs->opts.no_atime && mfs_meta_atime_is_due(attr);
}

static int cut(struct mfs_vfs *vfs, struct mfs_vnode *v, uint64_t ino, uint32_t drop,
               struct mfs_attr *attr)
{
    struct mfs_truncation t = {.size = attr->size, .cut = {.drop = drop}};
    uint64_t from = 0;
    int rc = -ECANCELED;

    while (rc == -ECANCELED && t.tries < MFS_TRUNCATE_TRIES) {
        rc = mfs_truncate_prepare(vfs, ino, v, &t);
        if (rc == 0)
            rc = mfs_meta_truncate(vfs->meta, ino, t.size, t.cut.trimmed, drop, &from, attr);
    }
    rc = mfs_truncate_end(vfs, ino, v, &t, rc);
    if (rc < 0)
        return rc;
    mfs_writeback_freed(vfs->wb);
    if (v != NULL)
        mfs_vnode_carry(v, from, attr);
    else
        mfs_pages_carry(vfs->pages, ino, from, attr->version);
    return 0;
}

static int set_size(struct mfs_vfs *vfs, struct mfs_vnode *v, uint64_t ino, uint32_t drop,
                    struct mfs_attr *attr)
{
    int rc;

    if (attr->size > MFS_FILE_SIZE_MAX(mfs_store_stripe_of(vfs->store, ino)))
        return -EFBIG;
    if (v != NULL)
        mfs_latch_close(&v->latch);
    rc = cut(vfs, v, ino, drop, attr);
    if (v != NULL)
        mfs_latch_open(&v->latch);
    if (rc == 0)
        mfs_meta_settle(vfs->meta, ino);
    return rc;
}

int mfs_vfs_setattr(struct mfs_vfs *vfs, uint64_t ino, uint32_t mask, struct mfs_attr *attr,
                    const struct mfs_owned *owned)
{
    struct mfs_vnode *v = mfs_vnode_find(vfs, ino);
    struct mfs_attr want = *attr;
    uint32_t rest = mask & ~(MFS_VFS_SET_SIZE | MFS_DROP_ALL);
    bool grants = (mask & MFS_SET_MODE) && mfs_mode_grants(attr->mode);
    int rc = 0;

    /* What was written is to be known before: a later commit must not undo the times set here. */
    if (v != NULL && grants)
        mfs_privileges_before_grant(v);
    else if (v != NULL && rest != 0)
        mfs_vnode_flush(v, NULL);
    if (mask & MFS_VFS_SET_SIZE)
        rc = set_size(vfs, v, ino, mask & MFS_DROP_ALL, attr);
    if (rc == 0 && rest != 0) {
        *attr = want;
        rc = mfs_meta_setattr(vfs->meta, ino, rest, attr, owned);
    }
    if (rc == 0 && v != NULL)
        mfs_vnode_overlay(v, attr);
    if (v != NULL && grants)
        mfs_vnode_flush(v, NULL); /* a write under way did not know */
    if (rc == 0 && v != NULL && (mask & MFS_VFS_SET_SIZE))
        mfs_tail_made(v, attr->size, true);
    else if (rc == 0 && v != NULL)
        mfs_tail_tell(v, &attr->size);
    mfs_vnode_put(v);
    return rc;
}

int mfs_vfs_readlink(struct mfs_vfs *vfs, uint64_t ino, char *buf, size_t cap)
{
    return mfs_meta_readlink(vfs->meta, ino, buf, cap);
}
