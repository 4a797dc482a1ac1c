/* Files whose content was lost with a partition's process: found by a pass over all partitions,
 * which is repeated when a partition moved meanwhile, and listed once under each of their names. */
#include "fsck/lost.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/placement.h"
#include "fsck/scan/scan.h"

#define LOOKS_MAX 8 /* until none is disturbed by a move */

static int add(struct mfs_lost_list *l, const struct mfs_buf *path, const struct mfs_lost_file *f)
{
    struct mfs_lost_file *grown = realloc(l->file, (l->n + 1) * sizeof *grown);
    char *copy = grown ? strdup(mfs_buf_len(path) ? mfs_buf_data(path) : "") : NULL;
    uint32_t *part = copy ? calloc(f->nparts + 1, sizeof *part) : NULL;

    if (grown)
        l->file = grown;
    if (!part) {
        free(copy);
        return -ENOMEM;
    }
    memcpy(part, f->part, f->nparts * sizeof *part);
    l->file[l->n] = *f;
    l->file[l->n].part = part;
    l->file[l->n++].path = copy;
    return 0;
}

/* Under each of its names. */
static int add_file(const struct mfs_census *c, struct mfs_lost_list *l,
                    const struct mfs_lost_file *f)
{
    size_t at = mfs_census_first_entry(c, f->ino), first = at;
    struct mfs_buf path;
    int rc = 0;

    l->files++;
    l->bytes += f->bytes;
    mfs_buf_init(&path);
    for (; at < c->entries.n && mfs_census_entry(c, at)->ino == f->ino && !rc; at++) {
        const struct mfs_seen_entry *e = mfs_census_entry(c, at);

        rc = mfs_census_path_of(c, e->dir, mfs_census_name(c, e->name), e->len, &path);
        if (!rc)
            rc = add(l, &path, f);
    }
    if (at == first && !rc)
        rc = add(l, &path, f);
    mfs_buf_fini(&path);
    return rc;
}

static int by_path(const void *a, const void *b)
{
    const struct mfs_lost_file *x = a, *y = b;

    return strcmp(x->path, y->path);
}

static void list_parts(const bool *in, uint32_t nparts, struct mfs_lost_file *f)
{
    f->nparts = 0;
    for (uint32_t p = 0; p < nparts; p++)
        if (in[p])
            f->part[f->nparts++] = p;
}

static bool home_is_unread(const struct mfs_census *c, uint64_t ino)
{
    uint32_t home = mfs_placement_home(ino);

    return home < c->nparts && c->unread[home];
}

static int list_unread(const struct mfs_census *c, struct mfs_lost_list *l)
{
    l->unread = calloc(c->nparts, sizeof *l->unread);
    for (uint32_t p = 0; p < c->nparts && l->unread; p++)
        if (c->unread[p])
            l->unread[l->nunread++] = p;
    return l->unread ? 0 : -ENOMEM;
}

/* Stripes of inodes that are gone are about to go, too. */
static int collect(const struct mfs_census *c, struct mfs_lost_list *l)
{
    struct mfs_lost_file f = {.part = calloc(c->nparts, sizeof *f.part)};
    bool *in = calloc(c->nparts, sizeof *in);
    int rc = f.part && in ? 0 : -ENOMEM;

    for (size_t i = 0; i < c->lost.n && !rc;) {
        const struct mfs_seen_stripe *s = mfs_flat_at(&c->lost, i);
        uint32_t p;

        f.ino = s->ino;
        f.stripes = f.bytes = 0;
        memset(in, 0, c->nparts * sizeof *in);
        for (; i < c->lost.n; i++, f.stripes++) {
            s = mfs_flat_at(&c->lost, i);
            if (s->ino != f.ino)
                break;
            f.bytes += s->len;
            p = mfs_placement_stripe(s->ino, s->n, c->nparts);
            if (p < c->nparts) /* any key may be there */
                in[p] = true;
        }
        list_parts(in, c->nparts, &f);
        if (mfs_census_inode(c, f.ino) || home_is_unread(c, f.ino))
            rc = add_file(c, l, &f);
    }
    free(in);
    free(f.part);
    if (l->n)
        qsort(l->file, l->n, sizeof *l->file, by_path);
    return rc;
}

static int look(struct mfs_store *store, struct mfs_lost_list *l, struct mfs_err *err)
{
    struct mfs_fsck_opts opts = {0};
    struct mfs_census c;
    bool disturbed = false;
    int rc = mfs_census_init(&c, store);

    c.partial = true;
    if (!rc)
        rc = mfs_census_scan(&c, store, &opts, &disturbed, err);
    if (!rc) {
        mfs_census_sort(&c);
        rc = collect(&c, l);
    }
    if (!rc)
        rc = list_unread(&c, l);
    mfs_census_fini(&c);
    return rc;
}

int mfs_fsck_lost(struct mfs_store *store, struct mfs_lost_list **list, struct mfs_err *err)
{
    struct mfs_lost_list *l = calloc(1, sizeof *l);
    int rc = l ? -EAGAIN : -ENOMEM;

    for (int i = 0; i < LOOKS_MAX && rc == -EAGAIN; i++)
        rc = look(store, l, err);
    if (rc == -EAGAIN)
        mfs_err_set(err, rc, "partitions move all the time; try again later");
    if (rc == -ENOMEM)
        mfs_err_set(err, rc, "out of memory");
    if (rc) {
        mfs_lost_list_free(l);
        return rc;
    }
    *list = l;
    return 0;
}

void mfs_lost_list_free(struct mfs_lost_list *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->n; i++) {
        free(l->file[i].path);
        free(l->file[i].part);
    }
    free(l->file);
    free(l->unread);
    free(l);
}
