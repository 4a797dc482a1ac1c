#include "vfs/content/privileges.h"

#include <stdlib.h>

#include "base/clock.h"

/* For pages that the kernel holds locked. */
#define PAGES_WAIT MFS_SEC

static bool has_any(const struct mfs_attr *attr, uint32_t drop)
{
    return ((drop & MFS_DROP_IDS) && mfs_mode_grants(attr->mode)) ||
           ((drop & MFS_DROP_CAPS) && (attr->flags & MFS_ATTR_SECCAPS));
}

int mfs_privileges_drop(struct mfs_vfs *vfs, const struct mfs_attr *attr, uint32_t drop)
{
    struct mfs_attr without = *attr;
    struct mfs_vnode *v;
    int rc;

    if (!has_any(attr, drop))
        return 0;
    rc = mfs_meta_setattr(vfs->meta, attr->ino, drop, &without, NULL);
    v = rc == 0 ? mfs_vnode_find(vfs, attr->ino) : NULL;
    if (v != NULL)
        mfs_vnode_learn(v, &without, false);
    mfs_vnode_put(v);
    return rc;
}

int mfs_privileges_begin_write(struct mfs_vnode *v, uint32_t drop)
{
    struct mfs_attr attr;
    int rc = 0;

    if (drop == 0)
        return 0;
    if (!mfs_vnode_attr(v, &attr))
        rc = mfs_vfs_getattr(v->vfs, v->ino, &attr);
    return rc < 0 ? rc : mfs_privileges_drop(v->vfs, &attr, drop);
}

bool mfs_privileges_appeared(struct mfs_vnode *v, uint32_t drop)
{
    bool appeared;

    if (drop == 0)
        return false;
    pthread_mutex_lock(&v->lock);
    appeared = !v->known || has_any(&v->attr, drop);
    pthread_mutex_unlock(&v->lock);
    return appeared;
}

void mfs_privileges_before_grant(struct mfs_vnode *v)
{
    mfs_vnode_drop_pages_wait(v, PAGES_WAIT);
    mfs_vnode_flush(v, NULL);
}

/* --- another mount gives some ----------------------------------------------------------------- */

struct grant {
    struct mfs_vfs *vfs;
    uint64_t ino;
    void (*done)(void *arg);
    void *arg;
};

/* The kernel's pages are dropped, and what was stored in mappings has come. */
static void commit_all(void *arg)
{
    struct grant *g = arg;
    struct mfs_vnode *v = mfs_vnode_find(g->vfs, g->ino);

    if (v != NULL)
        mfs_vnode_flush(v, NULL);
    mfs_vnode_put(v);
    if (g->done != NULL)
        g->done(g->arg);
    free(g);
}

void mfs_privileges_granted(void *vfs, uint64_t ino, uint64_t version, void (*done)(void *done_arg),
                            void *done_arg)
{
    struct grant *g = malloc(sizeof *g);

    if (g == NULL)
        return; /* not answered: it will be told again */
    *g = (struct grant){vfs, ino, done, done_arg};
    mfs_vnode_changed_elsewhere(vfs, ino, version, commit_all, g);
}
