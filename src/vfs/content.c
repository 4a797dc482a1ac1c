#include "vfs/content.h"

/* Adds [off, off + len) as far as it is below the end of data. */
static int add_below_end(const struct mfs_attr *attr, uint64_t off, size_t len,
                         struct mfs_ranges *content)
{
    uint64_t have = attr->data_end > off ? attr->data_end - off : 0;

    return mfs_ranges_add(content, 0, have < len ? have : len);
}

static int take_voids(const struct mfs_ranges *voids, uint64_t off, size_t len,
                      struct mfs_ranges *content)
{
    int rc = 0;

    for (uint32_t i = mfs_ranges_behind(voids, off); i < voids->n && !rc; i++) {
        uint64_t lo = voids->v[i].lo > off ? voids->v[i].lo - off : 0;

        if (lo >= len)
            break;
        rc = mfs_ranges_take(content, lo, voids->v[i].hi - off);
    }
    return rc;
}

/* False: those that are known are from before that version. */
static bool take_known(struct mfs_vnode *v, uint64_t version, uint64_t off, size_t len,
                       struct mfs_ranges *content, int *rc)
{
    bool known;

    pthread_mutex_lock(&v->lock);
    known = v->voids_version >= version;
    *rc = known ? take_voids(&v->voids, off, len, content) : 0;
    pthread_mutex_unlock(&v->lock);
    return known;
}

/* Of that version, or of a later one: which is as good for who reads the stripes after this. */
static void keep_voids(struct mfs_vnode *v, uint64_t version, struct mfs_ranges *voids)
{
    pthread_mutex_lock(&v->lock);
    if (version > v->voids_version) {
        mfs_ranges_move(&v->voids, voids);
        v->voids_version = version;
    }
    pthread_mutex_unlock(&v->lock);
}

static int find(struct mfs_vnode *v, const struct mfs_attr *attr, uint64_t off, size_t len,
                struct mfs_ranges *content)
{
    struct mfs_ranges voids;
    int rc = add_below_end(attr, off, len, content);

    if (rc < 0 || content->n == 0 || !(attr->flags & MFS_ATTR_VOIDS) ||
        take_known(v, attr->version, off, len, content, &rc))
        return rc;
    mfs_ranges_init(&voids);
    rc = mfs_meta_voids(v->vfs->meta, attr->ino, &voids);
    if (rc == 0)
        rc = take_voids(&voids, off, len, content);
    if (rc == 0)
        keep_voids(v, attr->version, &voids);
    mfs_ranges_fini(&voids);
    return rc;
}

int mfs_content_known(void *vnode, uint64_t off, size_t len, struct mfs_ranges *content)
{
    struct mfs_vnode *v = vnode;
    struct mfs_attr attr;
    int rc = 0;

    if (!mfs_vnode_attr(v, &attr)) {
        rc = mfs_meta_getattr(v->vfs->meta, v->ino, &attr);
        if (rc == 0)
            mfs_vnode_learn(v, &attr, false);
    }
    return rc < 0 ? rc : find(v, &attr, off, len, content);
}
