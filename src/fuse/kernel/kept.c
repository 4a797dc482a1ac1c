#include "fuse/kernel/kept.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>
#include <utlist.h>

#include "base/hash.h"

struct item {
    struct mfs_kept_name kept;
    uint64_t place;       /* hash of parent and name */
    UT_hash_handle hh;    /* in places */
    struct item *sibling; /* of the same inode */
};

/* An inode and its nodes: one, but for a moment when another mount moves it. */
struct inode {
    uint64_t ino;
    struct item *items;
    UT_hash_handle hh;
};

struct mfs_kept {
    struct inode *inodes;
    struct item *places;
};

uint64_t mfs_kept_place_hash(uint64_t parent, const char *name)
{
    return mfs_hash64(name, strlen(name), parent);
}

static struct inode *find_inode(struct mfs_kept *k, uint64_t ino)
{
    struct inode *i;

    HASH_FIND(hh, k->inodes, &ino, sizeof ino, i);
    return i;
}

static struct item *find_item(struct mfs_kept *k, uint64_t ino, uint64_t node)
{
    struct inode *i = find_inode(k, ino);
    struct item *t = i != NULL ? i->items : NULL;

    while (t != NULL && t->kept.node != node)
        t = t->sibling;
    return t;
}

const struct mfs_kept_name *mfs_kept_find(struct mfs_kept *k, uint64_t ino, uint64_t node)
{
    struct item *t = find_item(k, ino, node);

    return t != NULL ? &t->kept : NULL;
}

/* Takes it out of the places. Another one at its place is not touched. */
static void leave_place(struct mfs_kept *k, struct item *t)
{
    struct item *there;

    HASH_FIND(hh, k->places, &t->place, sizeof t->place, there);
    if (there == t)
        HASH_DEL(k->places, t);
}

static struct item *take_place(struct mfs_kept *k, uint64_t parent, const char *name)
{
    uint64_t place = mfs_kept_place_hash(parent, name);
    struct item *t;

    HASH_FIND(hh, k->places, &place, sizeof place, t);
    if (t != NULL)
        HASH_DEL(k->places, t);
    return t;
}

/* Gives it a place, of which `name` is taken over. What was there before stays among its inode's.
 */
static void set_place(struct mfs_kept *k, struct item *t, uint64_t parent, char *name)
{
    take_place(k, parent, name);
    free(t->kept.name);
    t->kept.name = name;
    t->kept.parent = parent;
    t->kept.changes++;
    t->place = mfs_kept_place_hash(parent, name);
    HASH_ADD(hh, k->places, place, sizeof t->place, t);
}

static struct inode *find_or_add_inode(struct mfs_kept *k, uint64_t ino)
{
    struct inode *i = find_inode(k, ino);

    if (i != NULL)
        return i;
    i = calloc(1, sizeof *i);
    if (i != NULL) {
        i->ino = ino;
        HASH_ADD(hh, k->inodes, ino, sizeof i->ino, i);
    }
    return i;
}

static void drop_inode_if_empty(struct mfs_kept *k, struct inode *i)
{
    if (i == NULL || i->items != NULL)
        return;
    HASH_DEL(k->inodes, i);
    free(i);
}

static struct item *add_item(struct mfs_kept *k, uint64_t ino, uint64_t node)
{
    struct inode *i = find_or_add_inode(k, ino);
    struct item *t = i != NULL ? calloc(1, sizeof *t) : NULL;

    if (t == NULL) {
        drop_inode_if_empty(k, i);
        return NULL;
    }
    t->kept.node = node;
    LL_PREPEND2(i->items, t, sibling);
    return t;
}

bool mfs_kept_add(struct mfs_kept *k, uint64_t ino, uint64_t node, uint64_t parent,
                  const char *name)
{
    struct item *t = find_item(k, ino, node);
    char *copy = t == NULL || !t->kept.stale ? strdup(name) : NULL;

    if (copy != NULL && t != NULL)
        leave_place(k, t);
    else if (copy != NULL)
        t = add_item(k, ino, node);
    if (copy == NULL || t == NULL) {
        free(copy);
        return false;
    }
    set_place(k, t, parent, copy);
    return true;
}

void mfs_kept_remove(struct mfs_kept *k, uint64_t ino, uint64_t node)
{
    struct inode *i = find_inode(k, ino);
    struct item *t = find_item(k, ino, node);

    if (t == NULL)
        return;
    leave_place(k, t);
    LL_DELETE2(i->items, t, sibling);
    free(t->kept.name);
    free(t);
    drop_inode_if_empty(k, i);
}

static void move_to(struct mfs_kept *k, struct item *t, uint64_t parent, const char *name)
{
    char *copy = strdup(name);

    if (copy != NULL)
        set_place(k, t, parent, copy);
}

void mfs_kept_renamed(struct mfs_kept *k, uint64_t parent, const char *name, uint64_t new_parent,
                      const char *new_name, bool exchange)
{
    struct item *moved = take_place(k, parent, name), *other = take_place(k, new_parent, new_name);

    if (moved != NULL)
        move_to(k, moved, new_parent, new_name);
    if (exchange && other != NULL)
        move_to(k, other, parent, name);
}

/* The first of the inode, or of all when there is no ino; and the next. */
static struct inode *first_inode(struct mfs_kept *k, uint64_t ino)
{
    return ino != 0 ? find_inode(k, ino) : k->inodes;
}

static struct inode *next_inode(const struct inode *i, uint64_t ino)
{
    return ino != 0 ? NULL : i->hh.next;
}

size_t mfs_kept_nodes(struct mfs_kept *k, uint64_t ino, uint64_t *nodes, size_t most)
{
    struct item *t;
    size_t n = 0;

    for (struct inode *i = first_inode(k, ino); i != NULL; i = next_inode(i, ino)) {
        LL_FOREACH2(i->items, t, sibling)
        {
            if (n < most)
                nodes[n++] = t->kept.node;
        }
    }
    return n;
}

static bool is_at(const struct mfs_kept_name *k, const struct mfs_kept_place *p)
{
    return k->parent == p->parent && strcmp(k->name, p->name) == 0;
}

size_t mfs_kept_revoke(struct mfs_kept *k, uint64_t ino, const struct mfs_kept_place but[2])
{
    struct item *t;
    size_t n = 0;

    for (struct inode *i = first_inode(k, ino); i != NULL; i = next_inode(i, ino)) {
        LL_FOREACH2(i->items, t, sibling)
        {
            if (!is_at(&t->kept, &but[0]) && !is_at(&t->kept, &but[1]))
                t->kept.stale = true;
            n += t->kept.stale;
        }
    }
    return n;
}

const struct mfs_kept_name *mfs_kept_stale(struct mfs_kept *k, uint64_t ino)
{
    struct item *t;

    for (struct inode *i = first_inode(k, ino); i != NULL; i = next_inode(i, ino)) {
        LL_FOREACH2(i->items, t, sibling)
        {
            if (t->kept.stale)
                return &t->kept;
        }
    }
    return NULL;
}

struct mfs_kept *mfs_kept_create(void)
{
    return calloc(1, sizeof(struct mfs_kept));
}

void mfs_kept_destroy(struct mfs_kept *k)
{
    if (k == NULL)
        return;
    while (k->inodes != NULL)
        mfs_kept_remove(k, k->inodes->ino, k->inodes->items->kept.node);
    free(k);
}
