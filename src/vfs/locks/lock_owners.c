/* Two lists of the same owners: of each file, and of each number at all files of a vnode.
 * Invariant: an owner is in both; an mfs_owner_id exists while its list is not empty, and counts in
 * it those that are releasing. */
#include "vfs/locks/lock_owners.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <utlist.h>

/* An owner at all files of a vnode. */
struct mfs_owner_id {
    uint64_t id;
    unsigned releasing; /* of `all` */
    struct mfs_owner *all;
    UT_hash_handle hh;
};

static struct mfs_owner_id *find_id(const struct mfs_vnode *v, uint64_t id)
{
    struct mfs_owner_id *i;

    HASH_FIND(hh, v->owners, &id, sizeof id, i);
    return i;
}

/* A process may have locks through many files, a file may have been inherited by many processes:
 * so the shorter list ends the search. */
struct mfs_owner *mfs_owner_find(const struct mfs_file *f, uint64_t id)
{
    struct mfs_owner_id *i = find_id(f->node, id);
    struct mfs_owner *of_file = f->owners, *of_id = i != NULL ? i->all : NULL;

    for (; of_file != NULL && of_id != NULL; of_file = of_file->next, of_id = of_id->id_next) {
        if (of_file->id == id)
            return of_file;
        if (of_id->file == f)
            return of_id;
    }
    return NULL;
}

static struct mfs_owner_id *find_or_add_id(struct mfs_vnode *v, uint64_t id)
{
    struct mfs_owner_id *i = find_id(v, id);

    if (i != NULL)
        return i;
    i = calloc(1, sizeof *i);
    if (i == NULL)
        return NULL;
    i->id = id;
    HASH_ADD(hh, v->owners, id, sizeof i->id, i);
    if (i->hh.tbl == NULL) {
        free(i);
        return NULL;
    }
    return i;
}

int mfs_owner_add(struct mfs_file *f, uint64_t id)
{
    struct mfs_owner_id *i;
    struct mfs_owner *o;

    if (mfs_owner_find(f, id) != NULL)
        return 0;
    o = malloc(sizeof *o);
    if (o == NULL)
        return -ENOMEM;
    i = find_or_add_id(f->node, id);
    if (i == NULL) {
        free(o);
        return -ENOMEM;
    }
    *o = (struct mfs_owner){.id = id, .file = f};
    DL_PREPEND(f->owners, o);
    DL_PREPEND2(i->all, o, id_prev, id_next);
    return 0;
}

void mfs_owner_drop(struct mfs_owner *o)
{
    struct mfs_vnode *v;
    struct mfs_owner_id *i;

    if (o == NULL)
        return;
    v = o->file->node;
    i = find_id(v, o->id);
    DL_DELETE(o->file->owners, o);
    DL_DELETE2(i->all, o, id_prev, id_next);
    assert(i != NULL && i->releasing >= o->releasing);
    i->releasing -= o->releasing;
    if (i->all == NULL) {
        HASH_DELETE(hh, v->owners, i);
        free(i);
    }
    free(o);
}

bool mfs_owner_drop_id(struct mfs_vnode *v, uint64_t id)
{
    struct mfs_owner_id *i = find_id(v, id);
    struct mfs_owner *o, *next;

    if (i == NULL)
        return false;
    for (o = i->all; o != NULL; o = next) { /* the last one takes the list along */
        next = o->id_next;
        mfs_owner_drop(o);
    }
    return true;
}

void mfs_owner_drop_file(struct mfs_file *f)
{
    while (f->owners != NULL)
        mfs_owner_drop(f->owners);
}

bool mfs_owner_is_shared(const struct mfs_owner *o)
{
    const struct mfs_owner_id *i = find_id(o->file->node, o->id);

    return i->all->id_next != NULL;
}

void mfs_owner_begin_release(struct mfs_owner *o)
{
    find_id(o->file->node, o->id)->releasing++;
    o->releasing = true;
}

bool mfs_owner_is_releasing(const struct mfs_vnode *v, uint64_t id)
{
    const struct mfs_owner_id *i = find_id(v, id);

    return i != NULL && i->releasing > 0;
}
