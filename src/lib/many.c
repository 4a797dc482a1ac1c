/* Many objects at once. The small ones of a batch are looked up, or put, together: one pipeline for
 * each partition. What does not go so, goes one by one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/objects.h"

#define BATCH MFS_META_LEARN /* a path's name is looked for in so many together */

static_assert(BATCH <= MFS_META_PUT_MOST, "a batch is put together");

static int check(struct memefs *fs, const struct memefs_item *items, size_t n)
{
    int rc = mfs_lib_enter(fs);

    return rc == 0 && items == NULL && n > 0 ? -EINVAL : rc;
}

static int count_failed(const struct memefs_item *items, size_t n)
{
    size_t failed = 0;

    for (size_t i = 0; i < n; i++)
        failed += items[i].result < 0;
    return failed > INT32_MAX ? INT32_MAX : (int)failed;
}

/* --- mget ------------------------------------------------------------------------------------- */

/* 1: where it is is in *name; else its result is set. */
static bool locate(struct memefs *fs, struct mfs_lib_where *w, struct memefs_item *item,
                   struct mfs_name *name, char *copy)
{
    const char *last;
    int rc = mfs_lib_where(fs, w, item->path, &last);

    if (rc == 0 && !w->searched)
        rc = -EACCES;
    item->result = rc;
    if (rc < 0)
        return false;
    name->dir = w->last.dir.ino;
    name->name = memcpy(copy, last, strlen(last) + 1);
    return true;
}

static void get_one(struct memefs *fs, struct memefs_item *item, const struct mfs_name *name,
                    bool allocate)
{
    void **alloc = allocate ? &item->buf : NULL;
    int rc =
        mfs_lib_get_known(fs, name->dir, name->name, item->buf, item->len, alloc, &item->result);

    if (rc < 0)
        item->result = rc;
    else if (rc == 0)
        item->result = mfs_lib_get_open(fs, item->path, item->buf, item->len, alloc);
}

struct names {
    struct mfs_name name[BATCH];
    char text[BATCH][MFS_NAME_LEN_MAX + 1];
};

static void get_batch(struct memefs *fs, struct mfs_lib_where *w, struct names *names,
                      struct memefs_item *items, size_t n)
{
    mfs_lib_where_fini(w); /* directories may have moved since the last batch */
    for (size_t i = 0; i < n; i++)
        if (!locate(fs, w, &items[i], &names->name[i], names->text[i]))
            names->name[i].name = NULL;
    mfs_meta_learn_names(mfs_vfs_meta(fs->vfs), names->name, n);
    for (size_t i = 0; i < n; i++)
        if (names->name[i].name != NULL)
            get_one(fs, &items[i], &names->name[i], items[i].buf == NULL);
}

int memefs_mget(struct memefs *fs, struct memefs_item *items, size_t n)
{
    struct mfs_lib_where w = {0};
    struct names *names;
    int rc = check(fs, items, n);

    if (rc < 0)
        return (int)mfs_lib_end(rc, "mget", NULL);
    names = malloc(sizeof *names);
    if (names == NULL)
        return (int)mfs_lib_end(-ENOMEM, "mget", NULL);
    for (size_t at = 0; at < n; at += BATCH)
        get_batch(fs, &w, names, items + at, n - at < BATCH ? n - at : BATCH);
    mfs_lib_where_fini(&w);
    free(names);
    return count_failed(items, n);
}

/* --- mput ------------------------------------------------------------------------------------- */

struct puts {
    struct mfs_vfs_put put[BATCH];
    struct memefs_item *item[BATCH];
    char text[BATCH][MFS_NAME_LEN_MAX + 1];
    size_t n;
};

/* Small ones wait for the others of the batch. */
static int put_or_add(struct memefs *fs, struct mfs_lib_where *w, struct puts *all,
                      struct memefs_item *item, unsigned flags)
{
    const char *name;
    int rc = item->path == NULL || (item->buf == NULL && item->len > 0) ? -EINVAL : 0;

    if (rc == 0 && item->len > MEMEFS_PUT_SMALL)
        return mfs_lib_put(fs, item->path, item->buf, item->len, flags);
    if (rc == 0)
        rc = mfs_lib_where(fs, w, item->path, &name);
    if (rc == -ENOENT && (flags & MEMEFS_PUT_PARENTS))
        return mfs_lib_put(fs, item->path, item->buf, item->len, flags);
    if (rc == 0)
        rc = mfs_lib_may_put(fs, &w->last, name);
    if (rc < 0)
        return rc;
    all->item[all->n] = item;
    all->put[all->n] =
        (struct mfs_vfs_put){.parent = w->last.dir.ino,
                             .name = memcpy(all->text[all->n], name, strlen(name) + 1),
                             .mode = 0666,
                             .buf = item->buf,
                             .len = item->len,
                             .exclusive = flags & MEMEFS_PUT_EXCL};
    all->n++;
    return 0;
}

static void put_batch(struct memefs *fs, struct mfs_lib_where *w, struct puts *all,
                      struct memefs_item *items, size_t n, unsigned flags)
{
    mfs_lib_where_fini(w);
    all->n = 0;
    for (size_t i = 0; i < n; i++)
        items[i].result = put_or_add(fs, w, all, &items[i], flags);
    mfs_vfs_put(fs->vfs, all->put, all->n, &fs->cred);
    for (size_t i = 0; i < all->n; i++) {
        struct memefs_item *item = all->item[i];

        item->result = all->put[i].rc;
        /* By the path: the directory may be another by now. */
        if (item->result == -EAGAIN || item->result == -ENOENT)
            item->result = mfs_lib_put(fs, item->path, item->buf, item->len, flags);
    }
}

int memefs_mput(struct memefs *fs, struct memefs_item *items, size_t n, unsigned flags)
{
    struct mfs_lib_where w = {0};
    struct puts *all;
    int rc = check(fs, items, n);

    if (rc == 0 && (flags & ~(MEMEFS_PUT_EXCL | MEMEFS_PUT_PARENTS)) != 0)
        rc = -EINVAL;
    all = rc == 0 ? malloc(sizeof *all) : NULL;
    if (all == NULL)
        return (int)mfs_lib_end(rc < 0 ? rc : -ENOMEM, "mput", NULL);
    for (size_t at = 0; at < n; at += BATCH)
        put_batch(fs, &w, all, items + at, n - at < BATCH ? n - at : BATCH, flags);
    mfs_lib_where_fini(&w);
    free(all);
    return count_failed(items, n);
}
