/* Where things are: nodes, the pieces of files, and what was lost. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/ino.h"
#include "cluster/placement.h"
#include "cluster/table.h"
#include "fsck/lost.h"
#include "lib/lib.h"
#include "store/store.h"

/* --- nodes ------------------------------------------------------------------------------------ */

static int by_id(const void *a, const void *b)
{
    const struct memefs_node *x = a, *y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}

static struct memefs_node *find_node(struct memefs_node *nodes, size_t n, uint32_t id)
{
    for (size_t i = 0; i < n; i++)
        if (nodes[i].id == id)
            return &nodes[i];
    return NULL;
}

/* Into as many as there are partitions, at most; how many. */
static size_t count_nodes(const struct memefs *fs, const struct mfs_table *t,
                          struct memefs_node *nodes)
{
    uint32_t here = mfs_store_node(mfs_client_store(fs->client));
    size_t n = 0;

    for (uint32_t p = 0; p < t->nparts; p++) {
        struct memefs_node *node = find_node(nodes, n, t->part[p].node);

        if (node == NULL) {
            node = &nodes[n++];
            node->id = t->part[p].node;
            node->is_here = node->id == here;
            memcpy(node->host, t->part[p].host, sizeof node->host);
        }
        node->partitions++;
    }
    qsort(nodes, n, sizeof *nodes, by_id);
    return n;
}

/* The caller's elements have `size` bytes, of this or another version. */
static void put_element(void *out, size_t size, size_t at, const void *element, size_t n)
{
    char *to = (char *)out + at * size;

    memset(to, 0, size);
    memcpy(to, element, n < size ? n : size);
}

static ssize_t list_nodes(struct memefs *fs, struct memefs_node *out, size_t size, size_t n)
{
    struct mfs_table *t = mfs_client_table(fs->client);
    struct memefs_node *nodes = t != NULL ? calloc(t->nparts, sizeof *nodes) : NULL;
    size_t have = 0;

    if (nodes != NULL)
        have = count_nodes(fs, t, nodes);
    for (size_t i = 0; i < have && i < n; i++)
        put_element(out, size, i, &nodes[i], sizeof nodes[i]);
    free(nodes);
    free(t);
    return have > 0 ? (ssize_t)have : -ENOMEM;
}

ssize_t memefs_nodes(struct memefs *fs, struct memefs_node *nodes, size_t size, size_t n)
{
    ssize_t rc = mfs_lib_enter(fs);

    if (rc == 0 && n > 0 && (nodes == NULL || size == 0))
        rc = -EINVAL;
    if (rc == 0)
        rc = list_nodes(fs, nodes, size, n);
    return (ssize_t)mfs_lib_end(rc, "nodes", NULL);
}

/* --- pieces ----------------------------------------------------------------------------------- */

struct pieces {
    struct memefs_piece *out, last; /* last: may go on with the next stripe */
    size_t size, room, n;
};

static void end_piece(struct pieces *p)
{
    if (p->last.length == 0)
        return;
    if (p->n < p->room)
        put_element(p->out, p->size, p->n, &p->last, sizeof p->last);
    p->n++;
}

static void add_piece(struct pieces *p, const struct memefs_piece *piece)
{
    if (p->last.length > 0 && p->last.partition == piece->partition &&
        p->last.offset + p->last.length == piece->offset) {
        p->last.length += piece->length;
        return;
    }
    end_piece(p);
    p->last = *piece;
}

static void list_pieces(const struct mfs_table *t, const struct mfs_attr *attr, uint64_t off,
                        uint64_t end, struct pieces *p)
{
    uint64_t size = mfs_ino_stripe_size(attr->ino, t->stripe_size);

    while (off < end) {
        uint64_t stripe = off / size, next = (stripe + 1) * size;
        uint32_t part = mfs_placement_stripe(attr->ino, (uint32_t)stripe, t->nparts);
        const struct memefs_piece piece = {.offset = off,
                                           .length = (next < end ? next : end) - off,
                                           .partition = part,
                                           .node = t->part[part].node};

        add_piece(p, &piece);
        off += piece.length;
    }
    end_piece(p);
}

ssize_t memefs_layout(struct memefs *fs, const char *path, uint64_t off, uint64_t len,
                      struct memefs_piece *pieces, size_t size, size_t n)
{
    struct pieces p = {.out = pieces, .size = size, .room = n};
    struct mfs_table *t = NULL;
    struct mfs_attr attr = {0};
    uint64_t end;
    int rc = mfs_lib_enter(fs);

    if (rc == 0 && n > 0 && (pieces == NULL || size == 0))
        rc = -EINVAL;
    if (rc == 0)
        rc = mfs_lib_look(fs, NULL, path, 0, &attr);
    if (rc == 0 && !S_ISREG(attr.mode))
        rc = S_ISDIR(attr.mode) ? -EISDIR : -EINVAL;
    if (rc == 0 && (t = mfs_client_table(fs->client)) == NULL)
        rc = -ENOMEM;
    if (rc < 0)
        return (ssize_t)mfs_lib_end(rc, "layout", path);
    assert(t != NULL);
    end = len == 0 || len > attr.size || off > attr.size - len ? attr.size : off + len;
    list_pieces(t, &attr, off, end, &p);
    free(t);
    return (ssize_t)p.n;
}

/* --- lost ------------------------------------------------------------------------------------- */

static int show_lost(const struct mfs_lost_list *list, memefs_lost_fn *fn, void *arg)
{
    int rc = 0;

    for (size_t i = 0; i < list->n && rc == 0; i++) {
        const struct mfs_lost_file *f = &list->file[i];
        const struct memefs_lost_file shown = {
            .path = f->path, .ino = f->ino, .stripes = f->stripes, .bytes = f->bytes};

        rc = fn(arg, &shown);
    }
    return rc == 0 && list->nunread > 0 ? -EIO : rc;
}

int memefs_lost(struct memefs *fs, memefs_lost_fn *fn, void *arg)
{
    struct mfs_lost_list *list = NULL;
    struct mfs_err err = {0};
    int rc = mfs_lib_enter(fs);

    if (rc == 0 && fn == NULL)
        rc = -EINVAL;
    if (rc == 0 && fs->ids.uid != 0 && fs->ids.uid != geteuid())
        rc = -EPERM;
    if (rc < 0)
        return (int)mfs_lib_end(rc, "lost", NULL);
    rc = mfs_fsck_lost(mfs_client_store(fs->client), &list, &err);
    if (rc < 0)
        return mfs_lib_end_said(rc, &err);
    rc = show_lost(list, fn, arg);
    mfs_lost_list_free(list);
    return (int)mfs_lib_end(rc, "lost", NULL);
}
