/* A file that is to be in another partition than its name: it is made without a name, as by
 * O_TMPFILE, and then linked. A client that dies between leaves an orphan, which housekeeping
 * frees; all that follows is as of a file that a rename has moved there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "meta/ops/ops.h"

/* After a node has refused something for want of memory no file is made for it: it might take the
 * inode yet, and then lose all that is written. */
#define FULL_FOR (30 * MFS_SEC)

/* One of the node's partitions, by the hash. */
static bool choose(const uint32_t *nodes, uint32_t nparts, uint32_t node, uint64_t hash,
                   uint32_t *part)
{
    uint32_t n = 0, which;

    for (uint32_t p = 0; p < nparts; p++)
        n += nodes[p] == node;
    if (n == 0)
        return false;
    which = (uint32_t)(hash % n);
    for (*part = 0; nodes[*part] != node || which-- > 0;)
        ++*part;
    return true;
}

bool mfs_meta_home_at(struct mfs_meta *meta, uint32_t node, uint64_t parent, const char *name,
                      uint32_t *home)
{
    size_t len = name ? strlen(name) : 0;
    uint64_t hash = 0;
    uint32_t *nodes;
    bool found;

    if (mfs_store_node_full(meta->store, node, FULL_FOR))
        return false;
    nodes = malloc(meta->nparts * sizeof *nodes);
    if (!nodes)
        return false;
    mfs_store_nodes(meta->store, nodes);
    *home = name ? mfs_placement_entry(parent, name, len, meta->nparts) : 0;
    if (name)
        hash = mfs_hash64(name, len, ~parent);
    else if (mfs_random(&hash, sizeof hash) < 0)
        hash = (uint64_t)mfs_clock_mono();
    found = (name && nodes[*home] == node) || choose(nodes, meta->nparts, node, hash, home);
    free(nodes);
    return found;
}

static int create_without_place(struct mfs_meta *meta, uint64_t parent, const char *name,
                                const struct mfs_new *new, bool exclusive, struct mfs_attr *attr,
                                bool *created)
{
    struct mfs_new spread = *new;

    spread.hints &= ~MFS_HINT_TOGETHER;
    return mfs_meta_create_open(meta, parent, name, &spread, exclusive, attr, created);
}

static bool is_name(const char *name)
{
    return *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* -ESTALE: the inode is gone before it has got its name. */
static int make(struct mfs_meta *meta, uint64_t parent, const char *name, const struct mfs_new *new,
                bool exclusive, struct mfs_attr *attr, bool *created)
{
    int rc = mfs_meta_tmpfile(meta, parent, name, new, true, attr);
    uint64_t ino;

    if (rc == -ENOSPC)
        return create_without_place(meta, parent, name, new, exclusive, attr, created);
    if (rc)
        return rc;
    ino = attr->ino;
    rc = mfs_meta_link(meta, ino, parent, name, attr);
    *created = !rc;
    if (!rc)
        return 0;
    mfs_meta_close(meta, ino, true);
    if (rc != -EEXIST || exclusive)
        return rc;
    return create_without_place(meta, parent, name, new, exclusive, attr, created);
}

/* What is there already is found before an inode is made in vain: a kernel has just asked, so that
 * it is mostly known by a lease, but a program with a lock file asks by this again and again. */
int mfs_create_elsewhere(struct mfs_meta *meta, uint64_t parent, const char *name,
                         const struct mfs_new *new, bool exclusive, struct mfs_attr *attr,
                         bool *created)
{
    int rc;

    *created = false;
    if (strlen(name) > MFS_NAME_LEN_MAX)
        return -ENAMETOOLONG;
    if (!is_name(name))
        return -EEXIST;
    rc = mfs_meta_lookup(meta, parent, name, attr);
    if (!rc && exclusive)
        return -EEXIST;
    if (!rc)
        return create_without_place(meta, parent, name, new, exclusive, attr, created);
    if (rc != -ENOENT)
        return rc;
    rc = make(meta, parent, name, new, exclusive, attr, created);
    if (rc == -ESTALE) /* the session has lapsed between, and the inode with it */
        rc = make(meta, parent, name, new, exclusive, attr, created);
    return rc;
}
