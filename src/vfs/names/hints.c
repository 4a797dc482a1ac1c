/* A hint is advice, but a wrong one is refused: a program that writes "place=locale" would never
 * learn why its tasks are slow. What the node it names means changes with the partition table, so
 * the table is looked at for each file that is made; where it has no partition any more, files are
 * spread as without a hint. */
#include "vfs/names/hints.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/clock.h"
#include "base/log.h"
#include "vfs/names/hint_text.h"
#include "vfs/vnode/vnode.h"

#define KNOWN MFS_XATTR_PLACE ", " MFS_XATTR_TTL " and " MFS_XATTR_READS

#define SHOWN_MAX  40 /* bytes of a wrong value in the log */
#define NODES_TEXT 200
#define TOLD_MOST  20 /* lines … */
#define TOLD_IN    (10 * MFS_SEC)

/* A program that tries wrong hints for ever must not fill the log. */
static bool may_tell(void)
{
    static atomic_int_fast64_t since;
    static atomic_uint told;
    int64_t now = mfs_clock_mono(), began = atomic_load(&since);

    if (now - began > TOLD_IN && atomic_compare_exchange_strong(&since, &began, now))
        atomic_store(&told, 0);
    return atomic_fetch_add(&told, 1) < TOLD_MOST;
}

static int refuse(int rc, const char *name, const void *value, size_t len, const char *why)
{
    char shown[SHOWN_MAX + 1];
    size_t n = len < SHOWN_MAX ? len : SHOWN_MAX;

    for (size_t i = 0; i < n; i++) {
        char c = ((const char *)value)[i];

        shown[i] = '?';
        if (c >= ' ' && c <= '~')
            shown[i] = c;
    }
    shown[n] = '\0';
    if (may_tell())
        mfs_warn("hints", "%s=%s%s: %s", name, shown, len > n ? "…" : "", why);
    return rc;
}

/* The nodes that have partitions, nparts numbers to be freed; NULL: ENOMEM. */
static uint32_t *nodes_of(const struct mfs_vfs *vfs)
{
    uint32_t *nodes = malloc(mfs_store_nparts(vfs->store) * sizeof *nodes);

    if (nodes != NULL)
        mfs_store_nodes(vfs->store, nodes);
    return nodes;
}

static bool is_among(const uint32_t *nodes, uint32_t n, uint32_t node)
{
    for (uint32_t i = 0; i < n; i++)
        if (nodes[i] == node)
            return true;
    return false;
}

static int node_cmp(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* "node-0, node-1, …": as many as there is room for. Sorts them. */
static void list_nodes(uint32_t *nodes, uint32_t n, char out[NODES_TEXT])
{
    size_t at = 0;

    out[0] = '\0';
    qsort(nodes, n, sizeof *nodes, node_cmp);
    for (uint32_t i = 0; i < n && at + sizeof ", node-4294967295" < NODES_TEXT; i++)
        if (i == 0 || nodes[i] != nodes[i - 1])
            at += (size_t)snprintf(out + at, NODES_TEXT - at, "%snode-%u", at > 0 ? ", " : "",
                                   nodes[i]);
}

static int refuse_place(struct mfs_vfs *vfs, const void *value, size_t len)
{
    uint32_t *nodes = nodes_of(vfs);
    char names[NODES_TEXT], why[NODES_TEXT + 100];

    if (nodes == NULL)
        return -ENOMEM;
    list_nodes(nodes, mfs_store_nparts(vfs->store), names);
    free(nodes);
    snprintf(why, sizeof why, "is to be local, spread, or node:NAME with one of %s", names);
    return refuse(-EINVAL, MFS_XATTR_PLACE, value, len, why);
}

static int check_node(struct mfs_vfs *vfs, uint32_t hints)
{
    uint32_t *nodes;
    bool there;

    if ((hints & MFS_HINT_PLACE) != MFS_HINT_NODE)
        return 0;
    nodes = nodes_of(vfs);
    if (nodes == NULL)
        return -ENOMEM;
    there = is_among(nodes, mfs_store_nparts(vfs->store), mfs_hint_node(hints));
    free(nodes);
    return there ? 0 : -EINVAL;
}

/* What it has already may be set, also when that node has left. */
static int of_file(const struct mfs_attr *attr, uint32_t hints, const void *value, size_t len,
                   int flags)
{
    bool had = attr->hints & MFS_HINT_PLACE;

    if (!S_ISREG(attr->mode))
        return -EPERM;
    if ((flags & XATTR_CREATE) && had)
        return -EEXIST;
    if ((flags & XATTR_REPLACE) && !had)
        return -ENODATA;
    if (mfs_hint_with_reads(attr->hints & ~MFS_HINT_TOGETHER, 0) == hints)
        return 0;
    return refuse(
        -EOPNOTSUPP, MFS_XATTR_PLACE, value, len,
        "a file stays where it was made; set it for its directory, and make the file anew");
}

static int set_place(struct mfs_vfs *vfs, uint64_t ino, const void *value, size_t len, int flags)
{
    struct mfs_attr attr = {0};
    uint32_t hints;
    int rc = mfs_hint_parse_place(value, len, &hints);

    if (rc < 0)
        return refuse_place(vfs, value, len);
    rc = mfs_vfs_getattr(vfs, ino, &attr);
    if (rc < 0)
        return rc;
    if (!S_ISDIR(attr.mode))
        return of_file(&attr, hints, value, len, flags);
    rc = check_node(vfs, hints);
    if (rc < 0)
        return rc == -EINVAL ? refuse_place(vfs, value, len) : rc;
    attr.hints = hints;
    return mfs_meta_set_hint(vfs->meta, ino, MFS_SET_PLACE, flags, &attr);
}

static int set_ttl(struct mfs_vfs *vfs, uint64_t ino, const void *value, size_t len, int flags)
{
    struct mfs_attr attr = {0};
    int64_t ttl;
    int rc = mfs_hint_parse_ttl(value, len, &ttl);

    if (rc < 0)
        return refuse(rc, MFS_XATTR_TTL, value, len, "is to be seconds, from 1 to 4294967295");
    rc = mfs_vfs_getattr(vfs, ino, &attr);
    if (rc < 0)
        return rc;
    if (!S_ISDIR(attr.mode))
        return refuse(-EOPNOTSUPP, MFS_XATTR_TTL, value, len,
                      "is a directory's, for the files in it; set it for that");
    attr.ttl = ttl;
    return mfs_meta_set_hint(vfs->meta, ino, MFS_SET_TTL, flags, &attr);
}

/* Of a file, what it has already: so it can be copied to where it has the same. */
static int reads_of_file(const struct mfs_attr *attr, uint32_t reads, const void *value, size_t len)
{
    if (!S_ISREG(attr->mode))
        return -EPERM;
    if (mfs_hint_reads(attr->hints) == reads)
        return 0;
    return refuse(-EOPNOTSUPP, MFS_XATTR_READS, value, len,
                  "is a directory's, for the files that are made in it; set it for that");
}

static int set_reads(struct mfs_vfs *vfs, uint64_t ino, const void *value, size_t len, int flags)
{
    struct mfs_attr attr = {0};
    uint32_t reads;
    int rc = mfs_hint_parse_reads(value, len, &reads);

    if (rc < 0)
        return refuse(rc, MFS_XATTR_READS, value, len, "is to be a number from 1 to 255");
    rc = mfs_vfs_getattr(vfs, ino, &attr);
    if (rc < 0)
        return rc;
    if (!S_ISDIR(attr.mode))
        return reads_of_file(&attr, reads, value, len);
    attr.hints = mfs_hint_with_reads(0, reads);
    return mfs_meta_set_hint(vfs->meta, ino, MFS_SET_READS, flags, &attr);
}

int mfs_hints_set(struct mfs_vfs *vfs, uint64_t ino, const char *name, const void *value,
                  size_t len, int flags)
{
    switch (mfs_hint_of(name)) {
    case MFS_HINT_IS_PLACE:
        return set_place(vfs, ino, value, len, flags);
    case MFS_HINT_IS_TTL:
        return set_ttl(vfs, ino, value, len, flags);
    case MFS_HINT_IS_READS:
        return set_reads(vfs, ino, value, len, flags);
    case MFS_HINT_IS_REFUSED:
        return refuse(-EOPNOTSUPP, name, value, len, "this hint is not followed; there are " KNOWN);
    default:
        return refuse(-EINVAL, name, value, len, "there is no such hint; there are " KNOWN);
    }
}

/* The hint's value; "": the inode has none. */
static void text_of(const struct mfs_attr *attr, enum mfs_hint hint, char out[MFS_HINT_TEXT_MAX])
{
    out[0] = '\0';
    if (hint == MFS_HINT_IS_PLACE && mfs_mode_has_hints(attr->mode))
        mfs_hint_place_text(attr->hints, out);
    else if (hint == MFS_HINT_IS_TTL && S_ISDIR(attr->mode) && attr->ttl > 0)
        snprintf(out, MFS_HINT_TEXT_MAX, "%lld", (long long)attr->ttl);
    else if (hint == MFS_HINT_IS_READS && mfs_mode_has_hints(attr->mode) &&
             mfs_hint_reads(attr->hints) > 0)
        snprintf(out, MFS_HINT_TEXT_MAX, "%u", mfs_hint_reads(attr->hints));
}

ssize_t mfs_hints_get(struct mfs_vfs *vfs, uint64_t ino, enum mfs_hint hint, void *buf, size_t cap)
{
    char text[MFS_HINT_TEXT_MAX];
    struct mfs_attr attr = {0};
    size_t n;
    int rc = mfs_vfs_getattr(vfs, ino, &attr);

    if (rc < 0)
        return rc;
    text_of(&attr, hint, text);
    n = strlen(text);
    if (n == 0)
        return -ENODATA;
    if (cap == 0)
        return (ssize_t)n;
    if (n > cap)
        return -ERANGE;
    memcpy(buf, text, n);
    return (ssize_t)n;
}

static int refuse_removal(enum mfs_hint hint)
{
    if (hint == MFS_HINT_IS_READS)
        return refuse(-EOPNOTSUPP, MFS_XATTR_READS, "", 0,
                      "a file keeps what it was made with: move it to a directory without that");
    return refuse(-EOPNOTSUPP, MFS_XATTR_PLACE, "", 0,
                  "a file stays where it was made; the attribute says how that was");
}

int mfs_hints_remove(struct mfs_vfs *vfs, uint64_t ino, enum mfs_hint hint)
{
    char text[MFS_HINT_TEXT_MAX];
    struct mfs_attr attr = {0};
    uint32_t mask = MFS_SET_PLACE;
    int rc = mfs_vfs_getattr(vfs, ino, &attr);

    if (rc < 0)
        return rc;
    text_of(&attr, hint, text);
    if (text[0] == '\0')
        return -ENODATA;
    if (!S_ISDIR(attr.mode))
        return refuse_removal(hint);
    if (hint == MFS_HINT_IS_TTL)
        mask = MFS_SET_TTL;
    else if (hint == MFS_HINT_IS_READS)
        mask = MFS_SET_READS;
    attr.ttl = 0;
    attr.hints = 0;
    return mfs_meta_set_hint(vfs->meta, ino, mask, XATTR_REPLACE, &attr);
}

void mfs_hints_place(struct mfs_vfs *vfs, uint64_t parent, const char *name, struct mfs_new *new)
{
    uint32_t node = MFS_NO_NODE;

    if (!S_ISREG(new->mode))
        return;
    if ((new->hints &MFS_HINT_PLACE) == MFS_HINT_LOCAL)
        node = mfs_store_node(vfs->store);
    else if ((new->hints &MFS_HINT_PLACE) == MFS_HINT_NODE)
        node = mfs_hint_node(new->hints);
    if (node != MFS_NO_NODE && mfs_meta_home_at(vfs->meta, node, parent, name, &new->home))
        new->hints |= MFS_HINT_TOGETHER;
}
