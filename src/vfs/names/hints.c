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
#include "base/ino.h"
#include "base/log.h"
#include "meta/hints.h"
#include "vfs/vnode/vnode.h"

#define SHOWN_MAX 40 /* bytes of a wrong value in the log */
#define LIST_TEXT 300
#define WHY_TEXT  (LIST_TEXT + 100)
#define TOLD_MOST 20 /* lines … */
#define TOLD_IN   (10 * MFS_SEC)

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
static void list_nodes(uint32_t *nodes, uint32_t n, char out[LIST_TEXT])
{
    size_t at = 0;

    out[0] = '\0';
    qsort(nodes, n, sizeof *nodes, node_cmp);
    for (uint32_t i = 0; i < n && at + sizeof ", node-4294967295" < LIST_TEXT; i++)
        if (i == 0 || nodes[i] != nodes[i - 1])
            at += (size_t)snprintf(out + at, LIST_TEXT - at, "%snode-%u", at > 0 ? ", " : "",
                                   nodes[i]);
}

static int refuse_name(const char *name, const void *value, size_t len)
{
    char why[WHY_TEXT] = "there is no such hint; there are ";
    const struct mfs_hint_kind *kind, *next;

    for (size_t i = 0; (kind = mfs_hint_kind_at(i)) != NULL; i++) {
        size_t at = strlen(why);

        next = mfs_hint_kind_at(i + 1);
        snprintf(why + at, sizeof why - at, "%s%s", kind->name,
                 next == NULL                      ? ""
                 : mfs_hint_kind_at(i + 2) == NULL ? " and "
                                                   : ", ");
    }
    return refuse(-EINVAL, name, value, len, why);
}

static void stripes_there_are(const struct mfs_vfs *vfs, const struct mfs_hint_kind *kind,
                              char why[WHY_TEXT])
{
    uint32_t usual = mfs_store_stripe_size(vfs->store);

    if (usual < mfs_stripe_bytes(1))
        snprintf(why, WHY_TEXT,
                 "the deployment's stripes have %uK, and no file can have smaller ones",
                 usual >> 10);
    else
        snprintf(why, WHY_TEXT, "is to be %s to %uK, which the deployment's stripes have",
                 kind->right, usual >> 10);
}

static int refuse_value(struct mfs_vfs *vfs, const struct mfs_hint_kind *kind, const void *value,
                        size_t len)
{
    char names[LIST_TEXT], why[WHY_TEXT];
    uint32_t *nodes;

    snprintf(why, sizeof why, "is to be %s", kind->right);
    if (kind->set == MFS_SET_STRIPE)
        stripes_there_are(vfs, kind, why);
    if (kind->set == MFS_SET_PLACE) {
        nodes = nodes_of(vfs);
        if (nodes == NULL)
            return -ENOMEM;
        list_nodes(nodes, mfs_store_nparts(vfs->store), names);
        free(nodes);
        snprintf(why, sizeof why, "is to be %s with one of %s", kind->right, names);
    } else if (kind->set == MFS_SET_REPLICAS && !mfs_store_is_replicated(vfs->store)) {
        snprintf(why, sizeof why,
                 "is to be 0: this deployment has no replicas (they take "
                 "cm start --replicas 1)");
    }
    return refuse(-EINVAL, kind->name, value, len, why);
}

/* Can it be followed here and now? 0, -EINVAL or -ENOMEM. */
static int check(struct mfs_vfs *vfs, const struct mfs_hint_kind *kind, uint32_t hints)
{
    uint32_t *nodes;
    bool there;

    /* What partitions and clients keep free for writes is reckoned in the deployment's stripes. */
    if (kind->set == MFS_SET_STRIPE)
        return mfs_stripe_bytes(mfs_hint_stripe(hints)) > mfs_store_stripe_size(vfs->store)
                   ? -EINVAL
                   : 0;
    if (kind->set == MFS_SET_REPLICAS)
        return hints & MFS_HINT_ALONE || mfs_store_is_replicated(vfs->store) ? 0 : -EINVAL;
    if (kind->set != MFS_SET_PLACE || (hints & MFS_HINT_PLACE) != MFS_HINT_NODE)
        return 0;
    nodes = nodes_of(vfs);
    if (nodes == NULL)
        return -ENOMEM;
    there = is_among(nodes, mfs_store_nparts(vfs->store), mfs_hint_node(hints));
    free(nodes);
    return there ? 0 : -EINVAL;
}

/* What it has already may be set, also when that node has left: so it can be copied to where it has
 * the same. That it has a replica no attribute shows. */
static int set_fixed(const struct mfs_hint_kind *kind, const struct mfs_attr *attr,
                     const struct mfs_attr *wanted, const void *value, size_t len, int flags)
{
    char had[MFS_HINT_TEXT_MAX], text[MFS_HINT_TEXT_MAX];

    mfs_hint_show(kind, attr, had);
    mfs_hint_show(kind, wanted, text);
    if ((flags & XATTR_CREATE) && had[0] != '\0')
        return -EEXIST;
    if ((flags & XATTR_REPLACE) && had[0] == '\0')
        return -ENODATA;
    if (strcmp(had, text) == 0 && (had[0] != '\0' || kind->set == MFS_SET_REPLICAS))
        return 0;
    return refuse(-EOPNOTSUPP, kind->name, value, len, kind->fixed);
}

int mfs_hints_set(struct mfs_vfs *vfs, uint64_t ino, const char *name, const void *value,
                  size_t len, int flags)
{
    const struct mfs_hint_kind *kind = mfs_hint_kind(name);
    struct mfs_attr wanted = {0}, attr = {0};
    int rc;

    if (kind == NULL)
        return refuse_name(name, value, len);
    if (mfs_hint_parse(kind, value, len, &wanted) < 0)
        return refuse_value(vfs, kind, value, len);
    rc = mfs_vfs_getattr(vfs, ino, &attr);
    if (rc < 0)
        return rc;
    if (!mfs_mode_has_hints(attr.mode))
        return -EPERM;
    wanted.mode = attr.mode;
    if (kind->fixed != NULL && !S_ISDIR(attr.mode))
        return set_fixed(kind, &attr, &wanted, value, len, flags);
    rc = check(vfs, kind, wanted.hints);
    if (rc < 0)
        return rc == -EINVAL ? refuse_value(vfs, kind, value, len) : rc;
    return mfs_meta_set_hint(vfs->meta, ino, kind->set, flags, &wanted);
}

ssize_t mfs_hints_get(struct mfs_vfs *vfs, uint64_t ino, const struct mfs_hint_kind *hint,
                      void *buf, size_t cap)
{
    char text[MFS_HINT_TEXT_MAX];
    struct mfs_attr attr = {0};
    size_t n;
    int rc = mfs_vfs_getattr(vfs, ino, &attr);

    if (rc < 0)
        return rc;
    mfs_hint_show(hint, &attr, text);
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

int mfs_hints_remove(struct mfs_vfs *vfs, uint64_t ino, const struct mfs_hint_kind *hint)
{
    struct mfs_attr none = {0}, attr = {0};
    char text[MFS_HINT_TEXT_MAX];
    int rc = mfs_vfs_getattr(vfs, ino, &attr);

    if (rc < 0)
        return rc;
    mfs_hint_show(hint, &attr, text);
    if (text[0] == '\0')
        return -ENODATA;
    if (hint->fixed != NULL && !S_ISDIR(attr.mode))
        return refuse(-EOPNOTSUPP, hint->name, "", 0, hint->fixed);
    return mfs_meta_set_hint(vfs->meta, ino, hint->set, XATTR_REPLACE, &none);
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
