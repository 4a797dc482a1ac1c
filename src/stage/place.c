/* Several sources may come to one place in the target. Each place is for the first one. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/table.h"
#include "stage/impl.h"
#include "stage/remote/remote.h"

struct place {
    uint64_t source; /* a hash of its path */
    size_t len;
    UT_hash_handle hh;
    char key[]; /* the directory's device and inode, and the name */
};

struct mfs_stage_places {
    pthread_mutex_t mutex; /* guards the table */
    struct place *table;
};

/* The names of one directory differ: only several entries, or the keys of a prefix, may meet. */
static bool may_meet(const struct mfs_stage_list *l)
{
    return l->n > 1 || (l->n && mfs_stage_is_prefix(l->entry[0].from));
}

int mfs_stage_places_create(struct mfs_stage_places **to, const struct mfs_stage_list *l)
{
    *to = NULL;
    if (!may_meet(l))
        return 0;
    *to = calloc(1, sizeof **to);
    if (!*to)
        return -ENOMEM;
    pthread_mutex_init(&(*to)->mutex, NULL);
    return 0;
}

void mfs_stage_places_destroy(struct mfs_stage_places *p)
{
    struct place *e, *next;

    if (!p)
        return;
    HASH_ITER(hh, p->table, e, next)
    {
        HASH_DEL(p->table, e);
        free(e);
    }
    pthread_mutex_destroy(&p->mutex);
    free(p);
}

static struct place *place_of(const struct mfs_stage_item *i)
{
    const struct mfs_stage_dir *d = i->dir;
    size_t name = strlen(i->to), len = sizeof d->to_dev + sizeof d->to_ino + name;
    struct place *e = calloc(1, sizeof *e + len);
    char path[PATH_MAX];

    if (!e)
        return NULL;
    mfs_stage_path(d, i->from, false, path, sizeof path);
    e->source = mfs_hash64(path, strlen(path), 0);
    e->len = len;
    memcpy(e->key, &d->to_dev, sizeof d->to_dev);
    memcpy(e->key + sizeof d->to_dev, &d->to_ino, sizeof d->to_ino);
    memcpy(e->key + sizeof d->to_dev + sizeof d->to_ino, i->to, name);
    return e;
}

static bool no_memory(struct mfs_stage_item *i)
{
    mfs_stage_fail(i->dir->stage, i->dir, i->from, false, -ENOMEM, "out of memory");
    mfs_stage_item_destroy(i);
    return false;
}

bool mfs_stage_place_take(struct mfs_stage_item *i)
{
    struct mfs_stage_places *p = i->dir->stage->places;
    struct place *e, *other;
    bool same = false, added = false;

    if (!p || i->placed)
        return true;
    e = place_of(i);
    if (!e)
        return no_memory(i);
    pthread_mutex_lock(&p->mutex);
    HASH_FIND(hh, p->table, e->key, e->len, other);
    if (other)
        same = other->source == e->source;
    else {
        HASH_ADD_KEYPTR(hh, p->table, e->key, e->len, e);
        added = e->hh.tbl;
    }
    pthread_mutex_unlock(&p->mutex);
    i->placed = true;
    if (added)
        return true;
    free(e);
    if (!other)
        return no_memory(i);
    if (!same) {
        char to[PATH_MAX];

        mfs_stage_path(i->dir, i->to, true, to, sizeof to);
        mfs_stage_fail(i->dir->stage, i->dir, i->from, false, -EEXIST,
                       "another source comes to %s, too: give each a place of its own", to);
    }
    mfs_stage_item_destroy(i);
    return false;
}
