/* Opening, creating and closing files. A handle is made (file_new), opened or created at the store,
 * and joined to its vnode (attach), whose reference it takes over; `attach` and `detach` are each
 * other's inverse and the only places that change the vnode's list of handles and its number of
 * writers. What the open's attributes mean for the kernel's pages is decided last, in
 * keeps_pages. The last close stores what is dirty, gives up the locks, detaches, and closes at the
 * home, in this order. */
#include "vfs/vnode/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "vfs/names/create.h"
#include "vfs/names/hints.h"
#include "vfs/locks/lock_owners.h"
#include "vfs/locks/unlock.h"
#include "vfs/locks/lock_wait.h"
#include "vfs/content/append.h"
#include "vfs/content/head.h"
#include "vfs/content/tail.h"
#include "vfs/content/truncate.h"

#define CARRY_WAIT (5 * MFS_MSEC)
#define LOOK       (MFS_MSEC / 20)

static struct mfs_file *file_new(struct mfs_vfs *vfs, int flags)
{
    struct mfs_file *f = calloc(1, sizeof *f);

    if (f == NULL)
        return NULL;
    f->flags = flags;
    f->removals = atomic_load(&vfs->removals);
    f->read_mark = mfs_meta_read_mark(vfs->meta);
    f->flock_owner = atomic_fetch_add(&vfs->opened, 1);
    return f;
}

/* Joins the handle to its vnode; takes over the reference. */
static int attach(struct mfs_file *f, struct mfs_vnode *v)
{
    struct mfs_dirty *d = atomic_load(&v->dirty);
    int rc = 0;

    if (mfs_flags_read(f->flags))
        rc = mfs_readahead_create(&f->ra, v->vfs->ra, v->ino);
    if (rc < 0)
        return rc;
    f->node = v;
    f->errors = d != NULL ? mfs_dirty_seen(d) : 0;
    atomic_init(&f->ra_generation, atomic_load(&v->generation));
    if (mfs_flags_write(f->flags))
        atomic_fetch_add(&v->writers, 1);
    pthread_mutex_lock(&v->lock);
    DL_APPEND(v->files, f);
    pthread_mutex_unlock(&v->lock);
    return 0;
}

/* Undoes attach and drops the vnode. */
static void detach(struct mfs_file *f)
{
    struct mfs_vnode *v = f->node;

    mfs_file_drop_head(f);
    if (mfs_flags_write(f->flags))
        atomic_fetch_sub(&v->writers, 1);
    pthread_mutex_lock(&v->lock);
    DL_DELETE(v->files, f);
    mfs_owner_drop_file(f);
    pthread_mutex_unlock(&v->lock);
    mfs_file_free(f);
    mfs_vnode_put(v);
}

/* An answer may tell of a commit of this mount's that has not been answered yet. */
static void await_carry(struct mfs_vnode *v, uint64_t version)
{
    int64_t end = mfs_clock_mono() + CARRY_WAIT;

    while (mfs_pages_behind(v->vfs->pages, v->ino, version) && atomic_load(&v->changing) > 0 &&
           mfs_clock_mono() < end)
        mfs_clock_sleep(LOOK);
}

/* The inode is open at the store; what do its attributes mean for what is kept here? */
static bool keeps_pages(struct mfs_file *f, struct mfs_attr *attr)
{
    struct mfs_vnode *v = f->node;
    bool keep;

    await_carry(v, attr->version);
    keep = mfs_pages_open(v->vfs->pages, v->ino, attr->version, &f->ticket);
    atomic_init(&f->unadopted, !keep);
    mfs_metric_add(v->vfs->metrics, MFS_VFS_OPENS, keep, 1);
    mfs_vnode_learn(v, attr, false);
    return keep;
}

static uint32_t truncation_drops(int flags)
{
    return flags & MFS_VFS_MAY_KEEP ? MFS_DROP_CAPS : MFS_DROP_ALL;
}

static int open_truncated(struct mfs_file *f, struct mfs_attr *attr)
{
    struct mfs_vnode *v = f->node;
    struct mfs_truncation t = {.cut = {.drop = truncation_drops(f->flags)}};
    int rc = -ECANCELED;

    mfs_latch_close(&v->latch);
    while (rc == -ECANCELED && t.tries < MFS_TRUNCATE_TRIES) {
        rc = mfs_truncate_prepare(v->vfs, v->ino, v, &t);
        if (rc == 0)
            rc = mfs_meta_open(v->vfs->meta, v->ino, &t.cut, attr, NULL);
    }
    rc = mfs_truncate_end(v->vfs, v->ino, v, &t, rc);
    if (rc == 0)
        mfs_vnode_changed(v);
    mfs_latch_open(&v->latch);
    if (rc == 0)
        mfs_meta_settle(v->vfs->meta, v->ino);
    return rc;
}

static int open_plain(struct mfs_file *f, struct mfs_attr *attr)
{
    struct mfs_vnode *v = f->node;
    struct mfs_head head;
    int rc;

    mfs_file_prepare_head(f, &head);
    rc = mfs_meta_open(v->vfs->meta, v->ino, NULL, attr, head.cap > 0 ? &head : NULL);
    if (rc < 0) {
        free(head.buf);
        return rc;
    }
    mfs_file_keep_head(f, &head);
    return 0;
}

/* Its release ends a reading of the file, which counts (meta/meta.h): not of who writes it. */
static void begin_reading(struct mfs_file *f, const struct mfs_attr *attr)
{
    if (!mfs_flags_write(f->flags) && !(f->flags & O_TRUNC) && !f->created)
        f->read = mfs_meta_read_begin(f->node->vfs->meta, f->read_mark, attr, 0, NULL);
}

void mfs_vfs_does_not_count(struct mfs_file *f)
{
    mfs_meta_read_forget(atomic_exchange(&f->read, NULL)); /* two may say so at once */
}

int mfs_vfs_open(struct mfs_vfs *vfs, uint64_t ino, int flags, struct mfs_file **file,
                 bool *keep_cache)
{
    struct mfs_file *f = file_new(vfs, flags);
    struct mfs_vnode *v = f != NULL ? mfs_vnode_get(vfs, ino) : NULL;
    struct mfs_attr attr = {0};
    int rc = v != NULL ? attach(f, v) : -ENOMEM;

    if (rc < 0) {
        mfs_vnode_put(v);
        free(f);
        return rc;
    }
    if (flags & O_TRUNC)
        rc = open_truncated(f, &attr);
    else
        rc = open_plain(f, &attr);
    if (rc < 0) {
        detach(f);
        return rc;
    }
    begin_reading(f, &attr);
    *keep_cache = keeps_pages(f, &attr);
    *file = f;
    return 0;
}

/* It was there already and is open now; O_CREAT without O_EXCL may still want it empty. */
static int truncate_found(struct mfs_vnode *v, uint32_t drop, struct mfs_attr *attr)
{
    attr->size = 0;
    return mfs_vfs_setattr(v->vfs, v->ino, MFS_VFS_SET_SIZE | drop, attr, NULL);
}

static int finish_create(struct mfs_vfs *vfs, struct mfs_file *f, bool created, uint32_t drop,
                         struct mfs_attr *attr, bool *keep_cache)
{
    struct mfs_vnode *v = mfs_vnode_get(vfs, attr->ino);
    int rc = v != NULL ? attach(f, v) : -ENOMEM;

    if (rc < 0) {
        mfs_vnode_put(v);
        free(f);
        return rc;
    }
    if (!created && (f->flags & O_TRUNC))
        rc = truncate_found(v, drop, attr);
    if (rc < 0) {
        detach(f);
        return rc;
    }
    begin_reading(f, attr);
    *keep_cache = keeps_pages(f, attr);
    mfs_vnode_overlay(v, attr);
    mfs_tail_tell(v, &attr->size);
    return 0;
}

/* Linux checks no rights of what it takes for created, so a file that was there already is opened
 * here only for its owner; for others the kernel looks it up afresh, and asks for rights. */
static bool may_open_found(const struct mfs_attr *attr, int flags, const struct mfs_cred *cred)
{
    mode_t wanted = 0;

    if ((flags & O_ACCMODE) != O_WRONLY)
        wanted |= S_IRUSR;
    if ((flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC)
        wanted |= S_IWUSR;
    return attr->uid == cred->uid && (attr->mode & wanted) == wanted;
}

int mfs_vfs_create_open(struct mfs_vfs *vfs, uint64_t parent, const char *name, mode_t mode,
                        int flags, const struct mfs_cred *cred, struct mfs_attr *attr,
                        struct mfs_file **file, bool *keep_cache)
{
    struct mfs_inherit in;
    struct mfs_file *f;
    uint64_t ino;
    bool created = false;
    int rc;

    if (strlen(name) > MFS_NAME_LEN_MAX)
        return -ENAMETOOLONG;
    f = file_new(vfs, flags);
    if (f == NULL)
        return -ENOMEM;
    rc = mfs_inherit_init(&in, vfs, parent, S_IFREG | (mode & 07777), cred);
    if (rc == 0) {
        mfs_hints_place(vfs, parent, name, &in.new);
        rc = mfs_meta_create_open(vfs->meta, parent, name, &in.new, flags & O_EXCL, attr, &created);
        mfs_inherit_fini(&in);
    }
    if (rc == -ESTALE)
        rc = -ENOENT; /* the directory is gone */
    if (rc == 0 && !S_ISREG(attr->mode))
        rc = S_ISDIR(attr->mode) ? -EISDIR : -ESTALE; /* let the kernel look it up afresh */
    if (rc < 0) {
        free(f);
        return rc;
    }
    ino = attr->ino;
    f->created = created;
    if (created || may_open_found(attr, flags, cred)) {
        rc = finish_create(vfs, f, created, cred->drop, attr, keep_cache);
    } else {
        free(f);
        rc = -ESTALE;
    }
    if (rc < 0)
        mfs_meta_close(vfs->meta, ino, false);
    else
        *file = f;
    return rc;
}

int mfs_vfs_tmpfile(struct mfs_vfs *vfs, uint64_t parent, const char *name, mode_t mode, int flags,
                    const struct mfs_cred *cred, struct mfs_attr *attr, struct mfs_file **file,
                    bool *keep_cache)
{
    struct mfs_inherit in;
    struct mfs_file *f;
    uint64_t ino;
    int rc = mfs_inherit_init(&in, vfs, parent, S_IFREG | (mode & 07777), cred);

    if (rc < 0)
        return rc;
    mfs_hints_place(vfs, parent, name, &in.new);
    rc = mfs_meta_tmpfile(vfs->meta, parent, name, &in.new, !(flags & O_EXCL), attr);
    if (rc == -ENOSPC && (in.new.hints &MFS_HINT_TOGETHER)) { /* elsewhere there may be memory */
        in.new.hints &= ~MFS_HINT_TOGETHER;
        rc = mfs_meta_tmpfile(vfs->meta, parent, name, &in.new, !(flags & O_EXCL), attr);
    }
    mfs_inherit_fini(&in);
    if (rc < 0)
        return rc;
    ino = attr->ino;
    f = file_new(vfs, flags & ~O_EXCL);
    rc = f != NULL ? finish_create(vfs, f, true, 0, attr, keep_cache) : -ENOMEM;
    if (rc < 0) {
        mfs_meta_close(vfs->meta, ino, true);
        return rc;
    }
    f->made_in = parent;
    f->made_by_uid = cred->uid;
    f->made_by_gid = cred->gid;
    f->removals--; /* what it took is free when it is closed, unless it has a name by then */
    *file = f;
    return 0;
}

void mfs_vfs_has_name(struct mfs_file *f)
{
    f->removals = atomic_load(&f->node->vfs->removals);
}

uint64_t mfs_vfs_made_in(const struct mfs_file *f, uid_t *uid, gid_t *gid)
{
    *uid = f->made_by_uid;
    *gid = f->made_by_gid;
    return f->made_in;
}

/* --- the end of a handle -------------------------------------------------------------------- */

int mfs_vfs_flush(struct mfs_file *f, uint64_t lock_owner)
{
    int rc = 0, unlocked;

    mfs_file_answer_taken(f);
    if (mfs_flags_write(f->flags)) {
        mfs_append_stop(f->node);
        rc = mfs_vnode_flush(f->node, &f->errors);
        mfs_meta_settle(f->node->vfs->meta, f->node->ino);
    }
    unlocked = mfs_file_unlock_owner(f, lock_owner);
    mfs_file_closing(f, lock_owner);
    return rc < 0 ? rc : unlocked;
}

int mfs_vfs_fsync(struct mfs_file *f)
{
    int rc;

    mfs_file_answer_taken(f);
    rc = mfs_vnode_flush(f->node, &f->errors);
    mfs_meta_settle(f->node->vfs->meta, f->node->ino);
    return rc;
}

void mfs_vfs_release(struct mfs_file *f)
{
    struct mfs_vnode *v = f->node;
    struct mfs_vfs *vfs = v->vfs;
    struct mfs_read *read = f->read;
    bool unlinked = atomic_load(&vfs->removals) != f->removals;
    uint64_t ino = v->ino;
    int rc = 0;

    if (mfs_flags_write(f->flags)) {
        mfs_append_stop(v);
        rc = mfs_vnode_flush(v, NULL);
    }
    if (rc < 0)
        mfs_warn("vfs", "inode %llx: data lost after close: %s", (unsigned long long)ino,
                 strerror(-rc));
    mfs_file_unlock_rest(f);
    mfs_lock_wait_kick(vfs->waits, ino);
    f->read = NULL;
    detach(f);
    rc = mfs_meta_close(vfs->meta, ino, unlinked);
    mfs_meta_read_end(vfs->meta, read);
    if (rc < 0 && rc != -ESTALE)
        mfs_warn("vfs", "inode %llx: close: %s", (unsigned long long)ino, strerror(-rc));
}
