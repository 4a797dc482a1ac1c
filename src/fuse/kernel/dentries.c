/* Two indexes over the same items: by inode, for revocations, and by the hash of parent and name,
 * for renames of this kernel. Invariant: an item is always in its inode's list, and an inode's list
 * is never empty. It is in by_hash unless another item has taken its parent and name since (the
 * kernel has one dentry there, and the newest is that one), or a rename found no memory. */
#include "fuse/kernel/dentries.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/hash.h"
#include "base/table.h"

struct item {
    struct mfs_dentry dentry;
    uint64_t hash;        /* of parent and name */
    UT_hash_handle hh;    /* in by_hash */
    struct item *sibling; /* of the same inode */
};

/* An inode and its dentries: one, but for a moment when another mount moves it. */
struct inode {
    uint64_t ino;
    struct item *items;
    UT_hash_handle hh;
};

struct mfs_dentries {
    struct inode *inodes;
    struct item *by_hash;
};

uint64_t mfs_dentry_hash(uint64_t parent, const char *name)
{
    return mfs_hash64(name, strlen(name), parent);
}

static struct inode *find_inode(struct mfs_dentries *d, uint64_t ino)
{
    struct inode *i;

    HASH_FIND(hh, d->inodes, &ino, sizeof ino, i);
    return i;
}

static struct item *find_item(struct mfs_dentries *d, uint64_t ino, uint64_t nodeid)
{
    struct inode *i = find_inode(d, ino);
    struct item *t = i != NULL ? i->items : NULL;

    while (t != NULL && t->dentry.nodeid != nodeid)
        t = t->sibling;
    return t;
}

const struct mfs_dentry *mfs_dentries_find(struct mfs_dentries *d, uint64_t ino, uint64_t nodeid)
{
    struct item *t = find_item(d, ino, nodeid);

    return t != NULL ? &t->dentry : NULL;
}

/* Takes it out of by_hash. Another item that has taken its parent and name stays. */
static void unhash(struct mfs_dentries *d, struct item *t)
{
    struct item *there;

    HASH_FIND(hh, d->by_hash, &t->hash, sizeof t->hash, there);
    if (there == t)
        HASH_DEL(d->by_hash, t);
}

static struct item *take_at(struct mfs_dentries *d, uint64_t parent, const char *name)
{
    uint64_t hash = mfs_dentry_hash(parent, name);
    struct item *t;

    HASH_FIND(hh, d->by_hash, &hash, sizeof hash, t);
    if (t != NULL)
        HASH_DEL(d->by_hash, t);
    return t;
}

/* Puts it into by_hash with a new parent and name, which is taken over. The item that was there
 * before stays in its inode's list, and so does this one where there is no memory for more. */
static void rehash(struct mfs_dentries *d, struct item *t, uint64_t parent, char *name)
{
    take_at(d, parent, name);
    free(t->dentry.name);
    t->dentry.name = name;
    t->dentry.parent = parent;
    t->dentry.changes++;
    t->hash = mfs_dentry_hash(parent, name);
    HASH_ADD(hh, d->by_hash, hash, sizeof t->hash, t);
}

static struct inode *find_or_add_inode(struct mfs_dentries *d, uint64_t ino)
{
    struct inode *i = find_inode(d, ino);

    if (i != NULL)
        return i;
    i = calloc(1, sizeof *i);
    if (i != NULL) {
        i->ino = ino;
        HASH_ADD(hh, d->inodes, ino, sizeof i->ino, i);
        if (i->hh.tbl == NULL) {
            free(i);
            return NULL;
        }
    }
    return i;
}

static void drop_inode_if_empty(struct mfs_dentries *d, struct inode *i)
{
    if (i == NULL || i->items != NULL)
        return;
    HASH_DEL(d->inodes, i);
    free(i);
}

static struct item *add_item(struct mfs_dentries *d, uint64_t ino, uint64_t nodeid)
{
    struct inode *i = find_or_add_inode(d, ino);
    struct item *t = i != NULL ? calloc(1, sizeof *t) : NULL;

    if (t == NULL) {
        drop_inode_if_empty(d, i);
        return NULL;
    }
    t->dentry.nodeid = nodeid;
    LL_PREPEND2(i->items, t, sibling);
    return t;
}

bool mfs_dentries_add(struct mfs_dentries *d, uint64_t ino, uint64_t nodeid, uint64_t parent,
                      const char *name)
{
    struct item *t = find_item(d, ino, nodeid);
    char *copy = t == NULL || !t->dentry.stale ? strdup(name) : NULL;

    if (copy != NULL && t != NULL)
        unhash(d, t);
    else if (copy != NULL)
        t = add_item(d, ino, nodeid);
    if (copy == NULL || t == NULL) {
        free(copy);
        return false;
    }
    rehash(d, t, parent, copy);
    return true;
}

void mfs_dentries_remove(struct mfs_dentries *d, uint64_t ino, uint64_t nodeid)
{
    struct inode *i = find_inode(d, ino);
    struct item *t = find_item(d, ino, nodeid);

    if (t == NULL)
        return;
    unhash(d, t);
    LL_DELETE2(i->items, t, sibling);
    free(t->dentry.name);
    free(t);
    drop_inode_if_empty(d, i);
}

static void move_to(struct mfs_dentries *d, struct item *t, uint64_t parent, const char *name)
{
    char *copy = strdup(name);

    if (copy != NULL)
        rehash(d, t, parent, copy);
}

void mfs_dentries_renamed(struct mfs_dentries *d, uint64_t parent, const char *name,
                          uint64_t new_parent, const char *new_name, bool exchange)
{
    struct item *moved = take_at(d, parent, name), *other = take_at(d, new_parent, new_name);

    if (moved != NULL)
        move_to(d, moved, new_parent, new_name);
    if (exchange && other != NULL)
        move_to(d, other, parent, name);
}

/* The inode, or the first of all when ino is 0; and the next one. */
static struct inode *first_inode(struct mfs_dentries *d, uint64_t ino)
{
    return ino != 0 ? find_inode(d, ino) : d->inodes;
}

static struct inode *next_inode(const struct inode *i, uint64_t ino)
{
    return ino != 0 ? NULL : i->hh.next;
}

size_t mfs_dentries_nodeids(struct mfs_dentries *d, uint64_t ino, uint64_t *nodeids, size_t most)
{
    struct item *t;
    size_t n = 0;

    for (struct inode *i = first_inode(d, ino); i != NULL; i = next_inode(i, ino)) {
        LL_FOREACH2(i->items, t, sibling)
        {
            if (n < most)
                nodeids[n++] = t->dentry.nodeid;
        }
    }
    return n;
}

static bool is_at(const struct mfs_dentry *d, const struct mfs_dentry_key *k)
{
    return d->parent == k->parent && strcmp(d->name, k->name) == 0;
}

size_t mfs_dentries_revoke(struct mfs_dentries *d, uint64_t ino, const struct mfs_dentry_key but[2])
{
    struct item *t;
    size_t n = 0;

    for (struct inode *i = first_inode(d, ino); i != NULL; i = next_inode(i, ino)) {
        LL_FOREACH2(i->items, t, sibling)
        {
            if (!is_at(&t->dentry, &but[0]) && !is_at(&t->dentry, &but[1]))
                t->dentry.stale = true;
            n += t->dentry.stale;
        }
    }
    return n;
}

const struct mfs_dentry *mfs_dentries_stale(struct mfs_dentries *d, uint64_t ino)
{
    struct item *t;

    for (struct inode *i = first_inode(d, ino); i != NULL; i = next_inode(i, ino)) {
        LL_FOREACH2(i->items, t, sibling)
        {
            if (t->dentry.stale)
                return &t->dentry;
        }
    }
    return NULL;
}

struct mfs_dentries *mfs_dentries_create(void)
{
    return calloc(1, sizeof(struct mfs_dentries));
}

void mfs_dentries_destroy(struct mfs_dentries *d)
{
    if (d == NULL)
        return;
    while (d->inodes != NULL)
        mfs_dentries_remove(d, d->inodes->ino, d->inodes->items->dentry.nodeid);
    free(d);
}
