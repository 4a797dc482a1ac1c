/* The voids of a file are read from its home when a read needs them and its attributes say that
 * there are any, and kept at the vnode with the version that they are of (v->voids,
 * v->voids_version, under v->lock). They are used as long as the file is at that version or an
 * older one. */
#include "vfs/content/content.h"

#include <errno.h>
#include <unistd.h>

#include "data/stripes/geometry.h"
#include "data/stripes/stripes.h"

#define VOIDS_MAX 4096U /* as MFS_VOIDS_MAX in partition/voids.h: there may be others then */

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

/* Of that version, or of a later one: which is as good for a caller that reads the stripes after
 * this. */
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

/* --- holes -------------------------------------------------------------------------------------
 */

static uint64_t round_down(uint64_t n)
{
    return n / MFS_GEOMETRY_BLOCK * MFS_GEOMETRY_BLOCK;
}

static uint64_t round_up(uint64_t n)
{
    return round_down(n + MFS_GEOMETRY_BLOCK - 1);
}

static int all_voids(struct mfs_vnode *v, const struct mfs_attr *attr, struct mfs_ranges *voids)
{
    bool known;
    int rc = 0;

    if (!(attr->flags & MFS_ATTR_VOIDS))
        return 0;
    pthread_mutex_lock(&v->lock);
    known = v->voids_version >= attr->version;
    for (uint32_t i = 0; known && i < v->voids.n && !rc; i++)
        rc = mfs_ranges_add(voids, v->voids.v[i].lo, v->voids.v[i].hi);
    pthread_mutex_unlock(&v->lock);
    return known ? rc : mfs_meta_voids(v->vfs->meta, attr->ino, voids);
}

/* The first hole that ends behind `off`: blocks that are wholly void, to their end what is void up
 * to the end of data. From there on all is one. */
static struct mfs_range next_void(const struct mfs_ranges *voids, uint64_t off, uint64_t data_end)
{
    uint64_t end = round_up(data_end);
    struct mfs_range hole = {end, UINT64_MAX};

    for (uint32_t i = mfs_ranges_behind(voids, off); i < voids->n && hole.lo == end; i++) {
        uint64_t lo = round_up(voids->v[i].lo), hi = voids->v[i].hi;

        hi = hi >= data_end ? UINT64_MAX : round_down(hi);
        if (lo < hi && hi > off)
            hole = (struct mfs_range){lo, hi};
    }
    return hole;
}

static uint64_t next_data(const struct mfs_ranges *voids, uint64_t off, uint64_t data_end)
{
    struct mfs_range hole = next_void(voids, off, data_end);

    return hole.lo <= off ? hole.hi : off;
}

/* Of a file in very many pieces some voids are not known: what of them is whole stripes, or behind
 * the last byte of one, is found there. */
static int seek_stripes(struct mfs_vnode *v, const struct mfs_attr *attr,
                        const struct mfs_ranges *voids, int whence, uint64_t *at)
{
    uint64_t from = *at;
    int rc;

    for (;;) {
        rc = mfs_stripes_seek(v->vfs->store, v->ino, from, whence, attr->size, attr->data_end, at);
        if (rc < 0 || whence == SEEK_HOLE || *at == from)
            return rc;
        from = next_data(voids, *at, attr->data_end);
        if (from >= attr->size)
            return -ENXIO;
    }
}

int mfs_content_seek(struct mfs_vnode *v, const struct mfs_attr *attr, uint64_t off, int whence,
                     uint64_t *result)
{
    bool data = whence == SEEK_DATA;
    uint64_t at = off, other;
    struct mfs_ranges voids;
    int rc = off < attr->size ? 0 : -ENXIO;

    mfs_ranges_init(&voids);
    if (rc == 0)
        rc = all_voids(v, attr, &voids);
    if (rc == 0 && data)
        at = next_data(&voids, off, attr->data_end);
    else if (rc == 0)
        at = next_void(&voids, off, attr->data_end).lo;
    at = at > off ? at : off;
    if (rc == 0 && data && at >= attr->size)
        rc = -ENXIO;
    if (rc == 0 && voids.n >= VOIDS_MAX) {
        other = data ? at : off;
        rc = seek_stripes(v, attr, &voids, whence, &other);
        at = data || other < at ? other : at;
    }
    mfs_ranges_fini(&voids);
    *result = at < attr->size ? at : attr->size;
    return rc;
}
