/* A file that is to be in another partition than its name: it is made without a name, as by
 * O_TMPFILE, and then linked. A client that dies between leaves an orphan, which housekeeping
 * frees; all that follows is as of a file that a rename has moved there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "meta/ops/ops.h"

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
    uint32_t *nodes = malloc(meta->nparts * sizeof *nodes);
    size_t len = name ? strlen(name) : 0;
    uint64_t hash = 0;
    bool found;

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

int mfs_create_elsewhere(struct mfs_meta *meta, uint64_t parent, const char *name,
                         const struct mfs_new *new, bool exclusive, struct mfs_attr *attr,
                         bool *created)
{
    uint64_t ino;
    int rc;

    *created = false;
    if (strlen(name) > MFS_NAME_LEN_MAX)
        return -ENAMETOOLONG;
    if (!is_name(name))
        return -EEXIST;
    rc = mfs_meta_tmpfile(meta, parent, new, true, attr);
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
