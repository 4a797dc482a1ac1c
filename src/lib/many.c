/* Many objects at once. The small ones of a batch are looked up, or put, together: one pipeline for
 * each partition. What does not go so, goes one by one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/objects.h"

#define GETS  MFS_META_GLANCES
#define BATCH MFS_META_PUT_MOST

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

/* A batch of them. */
struct gets {
    struct memefs *fs;
    struct mfs_lib_where where;
    struct mfs_glances *glances;
    struct memefs_item *items;
    uint64_t mark;              /* mfs_meta_read_mark, before they were asked for */
    struct mfs_name name[GETS]; /* those that are done have none any more */
    char text[GETS][MFS_NAME_LEN_MAX + 1];
};

/* Its list of rights would be asked for, when it is not known. */
static bool is_asked_for_rights(const struct memefs *fs, const struct mfs_attr *attr)
{
    return (attr->flags & MFS_ATTR_ACL) && fs->ids.uid != 0 && fs->ids.uid != attr->uid;
}

static void take(void *arg, size_t i, int rc, const struct mfs_attr *attr, const void *content,
                 size_t n)
{
    struct gets *all = arg;
    struct memefs_item *item = &all->items[i];
    void **alloc = item->buf == NULL ? &item->buf : NULL;

    if (rc == 0 && is_asked_for_rights(all->fs, attr))
        return;
    if (rc == 0)
        rc = mfs_lib_get_told(all->fs, all->mark, &all->name[i], attr, content, n, item->buf,
                              item->len, alloc, &item->result);
    if (rc < 0)
        item->result = rc;
    if (rc != 0)
        all->name[i].name = NULL;
}

/* Those that are not plain small files, or were got before. */
static void get_others(struct gets *all, size_t from, size_t n)
{
    size_t left = 0;

    for (size_t i = from; i < from + n; i++)
        left += all->name[i].name != NULL;
    if (left == 0)
        return;
    mfs_meta_learn_names(mfs_vfs_meta(all->fs->vfs), all->name + from, n);
    for (size_t i = from; i < from + n; i++)
        if (all->name[i].name != NULL)
            get_one(all->fs, &all->items[i], &all->name[i], all->items[i].buf == NULL);
}

static void get_batch(struct gets *all, struct memefs_item *items, size_t n)
{
    mfs_lib_where_fini(&all->where); /* directories may have moved since the last batch */
    all->items = items;
    for (size_t i = 0; i < n; i++)
        if (!locate(all->fs, &all->where, &items[i], &all->name[i], all->text[i]))
            all->name[i].name = NULL;
    all->mark = mfs_meta_read_mark(mfs_vfs_meta(all->fs->vfs));
    mfs_meta_glance(all->glances, all->name, n, take, all);
    for (size_t at = 0; at < n; at += MFS_META_LEARN)
        get_others(all, at, n - at < MFS_META_LEARN ? n - at : MFS_META_LEARN);
}

int memefs_mget(struct memefs *fs, struct memefs_item *items, size_t n)
{
    struct gets *all;
    int rc = check(fs, items, n);

    if (rc < 0)
        return (int)mfs_lib_end(rc, "mget", NULL);
    all = malloc(sizeof *all);
    if (all != NULL) {
        all->fs = fs;
        all->where = (struct mfs_lib_where){0};
        all->glances = mfs_glances_create(mfs_vfs_meta(fs->vfs));
    }
    if (all == NULL || all->glances == NULL) {
        free(all);
        return (int)mfs_lib_end(-ENOMEM, "mget", NULL);
    }
    for (size_t at = 0; at < n; at += GETS)
        get_batch(all, items + at, n - at < GETS ? n - at : GETS);
    mfs_lib_where_fini(&all->where);
    mfs_glances_destroy(all->glances);
    free(all);
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
