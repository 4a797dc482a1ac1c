#include "meta_world.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cluster/placement.h"

static uint64_t root; /* of the world */
static char world[16];
static int64_t inodes; /* before it was made */

/* Inodes of the beginning are told apart by their size (or uid for directories): names for them. */
enum { F = 1, G, H, D1, D2, S, T };
static const char *const label[] = {"new", "f", "g", "h", "d1", "d2", "s", "t"};

static int make(struct meta_client *c, uint64_t dir, const char *name, uint32_t mode, uint32_t id,
                uint64_t *ino)
{
    struct mfs_new new = {.mode = mode, .uid = id};
    struct mfs_attr attr;
    int rc = mfs_meta_mknod(c->meta, dir, name, &new, &attr);

    if (ino)
        *ino = attr.ino;
    return rc;
}

/* Finds a way down; a path is at most three names. */
static int walk(struct meta_client *c, const char *path, uint64_t *dir, char *last, size_t n)
{
    char copy[32], *at = copy, *slash;
    struct mfs_attr attr;
    int rc;

    snprintf(copy, sizeof copy, "%s", path);
    *dir = root;
    while ((slash = strchr(at, '/'))) {
        *slash = 0;
        rc = mfs_meta_lookup(c->meta, *dir, at, &attr);
        if (rc)
            return rc;
        *dir = attr.ino;
        at = slash + 1;
    }
    snprintf(last, n, "%s", at);
    return 0;
}

static int use_everywhere(struct meta_client *c, uint64_t dir)
{
    char name[16];
    int rc = 0;

    for (uint32_t p = 0; p < mfs_store_nparts(c->store) && !rc; p++) {
        meta_name_at(c, dir, p, "tmp", name, sizeof name);
        rc = make(c, dir, name, S_IFREG | 0600, 0, NULL);
        if (!rc)
            rc = mfs_meta_unlink(c->meta, dir, name);
    }
    return rc;
}

/* An inode whose home is not where its entry is. */
static int make_moved(struct meta_client *c, uint64_t dir, const char *name, uint32_t mode,
                      uint32_t id, uint64_t *ino)
{
    uint32_t nparts = mfs_store_nparts(c->store);
    uint32_t part = mfs_placement_entry(dir, name, strlen(name), nparts);
    char other[16];
    int rc;

    meta_name_at(c, dir, (part + 1) % nparts, "old", other, sizeof other);
    rc = make(c, dir, other, mode, id, ino);
    return rc ? rc : mfs_meta_rename(c->meta, dir, other, dir, name, 0);
}

void meta_world_root(struct meta_client *c, uint64_t dir)
{
    inodes = meta_client_keys(c, "I*") - 1;
    root = dir;
}

int meta_world_make(struct meta_client *c)
{
    uint64_t d1, d2, f, s, t;
    static unsigned worlds;
    struct mfs_attr attr;
    int rc;

    snprintf(world, sizeof world, "w%u", worlds++);
    inodes = meta_client_keys(c, "I*");
    rc = make(c, MFS_ROOT_INO, world, S_IFDIR | 0755, 0, &root);
    if (!rc)
        rc = make(c, root, "d1", S_IFDIR | 0755, D1, &d1);
    if (!rc)
        rc = make(c, root, "d2", S_IFDIR | 0755, D2, &d2);
    if (!rc)
        rc = make(c, d1, "f", S_IFREG | 0644, F, &f);
    if (!rc)
        rc = make(c, d1, "g", S_IFREG | 0644, G, NULL);
    if (!rc)
        rc = make(c, d1, "s", S_IFDIR | 0755, S, &s);
    if (!rc)
        rc = use_everywhere(c, s);
    if (!rc)
        rc = make_moved(c, d2, "h", S_IFREG | 0644, H, NULL);
    if (!rc)
        rc = make_moved(c, d2, "t", S_IFDIR | 0755, T, &t);
    if (!rc)
        rc = use_everywhere(c, t);
    if (!rc)
        rc = mfs_meta_link(c->meta, f, d2, "l", &attr);
    return rc;
}

/* --- operations ---------------------------------------------------------------------------------
 */

void meta_op_find(struct meta_client *c, const struct meta_op *op, struct meta_where *w)
{
    struct mfs_attr attr;

    memset(w, 0, sizeof *w);
    if (!op->from)
        return;
    w->rc = walk(c, op->from, &w->dir, w->name, sizeof w->name);
    if (!w->rc && op->to)
        w->rc = walk(c, op->to, &w->to_dir, w->to_name, sizeof w->to_name);
    if (!w->rc && mfs_meta_lookup(c->meta, w->dir, w->name, &attr) == 0)
        w->ino = attr.ino;
}

int meta_op_run(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    int rc = w->rc ? w->rc : op->run(c, op, w);

    return rc == -ESTALE ? -ENOENT : rc; /* as the kernel looks the name up again */
}

static int op_create(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    return make(c, w->dir, w->name, op->arg, 0, NULL);
}

static int op_open(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    struct mfs_new new = {.mode = S_IFREG | 0600};
    struct mfs_attr attr;
    bool created;
    int rc = mfs_meta_create_open(c->meta, w->dir, w->name, &new, false, &attr, &created);

    (void)op;
    if (!rc)
        mfs_meta_close(c->meta, attr.ino, true);
    return rc;
}

static int op_unlink(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    (void)op;
    return mfs_meta_unlink(c->meta, w->dir, w->name);
}

static int op_rmdir(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    (void)op;
    return mfs_meta_rmdir(c->meta, w->dir, w->name);
}

static int op_link(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    struct mfs_attr attr;

    (void)op;
    return w->ino ? mfs_meta_link(c->meta, w->ino, w->to_dir, w->to_name, &attr) : -ENOENT;
}

static int op_rename(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    return mfs_meta_rename(c->meta, w->dir, w->name, w->to_dir, w->to_name, op->arg);
}

const struct meta_op meta_ops[] = {
    {"create_f", op_create, "d1/f", NULL, S_IFREG | 0600},
    {"create_x", op_create, "d1/x", NULL, S_IFREG | 0600},
    {"open_f", op_open, "d1/f", NULL, 0},
    {"mkdir_h", op_create, "d2/h", NULL, S_IFDIR | 0700},
    {"create_in_s", op_create, "d1/s/n", NULL, S_IFREG | 0600},
    {"mkdir_in_t", op_create, "d2/t/m", NULL, S_IFDIR | 0700},
    {"unlink_f", op_unlink, "d1/f", NULL, 0},
    {"unlink_h", op_unlink, "d2/h", NULL, 0},
    {"unlink_l", op_unlink, "d2/l", NULL, 0},
    {"rmdir_s", op_rmdir, "d1/s", NULL, 0},
    {"rmdir_t", op_rmdir, "d2/t", NULL, 0},
    {"link_f_x", op_link, "d1/f", "d1/x", 0},
    {"link_h_f", op_link, "d2/h", "d1/f", 0},
    {"mv_f_g", op_rename, "d1/f", "d1/g", 0},
    {"mv_g_f", op_rename, "d1/g", "d1/f", 0},
    {"mv_f_x", op_rename, "d1/f", "d1/x", 0},
    {"mv_h_f", op_rename, "d2/h", "d1/f", 0},
    {"mv_h_x_noreplace", op_rename, "d2/h", "d1/x", RENAME_NOREPLACE},
    {"mv_f_h", op_rename, "d1/f", "d2/h", 0},
    {"mv_l_f", op_rename, "d2/l", "d1/f", 0},
    {"swap_f_h", op_rename, "d1/f", "d2/h", RENAME_EXCHANGE},
    {"swap_g_s", op_rename, "d1/g", "d1/s", RENAME_EXCHANGE},
    {"swap_s_t", op_rename, "d1/s", "d2/t", RENAME_EXCHANGE},
    {"swap_f_t", op_rename, "d1/f", "d2/t", RENAME_EXCHANGE},
    {"mv_s_t", op_rename, "d1/s", "d2/t", 0},
    {"mv_t_s", op_rename, "d2/t", "d1/s", 0},
    {"mv_s_u", op_rename, "d1/s", "d2/u", 0},
    {"mv_t_u", op_rename, "d2/t", "d2/u", 0},
    {"mv_s_into_t", op_rename, "d1/s", "d2/t/in", 0},
    {"mv_t_into_s", op_rename, "d2/t", "d1/s/in", 0},
    {"mv_g_into_s", op_rename, "d1/g", "d1/s/in", 0},
    {"mv_d2_into_s", op_rename, "d2", "d1/s/in", 0},
};
const size_t meta_nops = sizeof meta_ops / sizeof *meta_ops;

/* --- looks --------------------------------------------------------------------------------------
 */

/* What the names mean, as one number: an identity (1…) or 0 for none per name. */
static int look_at(struct meta_client *c, const char *const *paths, size_t n)
{
    int sum = 0;

    for (size_t i = 0; i < n; i++) {
        struct mfs_attr attr;
        uint64_t dir;
        char name[32];
        int rc = walk(c, paths[i], &dir, name, sizeof name);

        if (!rc)
            rc = mfs_meta_lookup(c->meta, dir, name, &attr);
        if (rc && rc != -ENOENT)
            return rc;
        sum = sum * 10 + (rc ? 0 : (int)attr.uid + 1);
    }
    return sum;
}

static int list_at(struct meta_client *c, const char *const *paths, size_t n)
{
    int sum = 0;

    for (size_t i = 0; i < n; i++) {
        struct mfs_listing *l;
        struct mfs_attr attr;
        int rc = mfs_meta_lookup(c->meta, root, paths[i], &attr);

        if (!rc)
            rc = mfs_meta_list(c->meta, attr.ino, &l);
        if (rc)
            return rc;
        for (size_t k = 2; k < mfs_listing_count(l); k++) {
            struct mfs_dirent e = mfs_listing_at(l, k);

            if (mfs_meta_getattr(c->meta, e.ino, &attr) == 0)
                sum += (int)(i + 1) * (e.name[0] * 31 + (int)attr.uid * 1009);
        }
        mfs_listing_free(l);
    }
    return sum;
}

static int look_files(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    (void)op;
    (void)w;
    return look_at(c, (const char *[]){"d1/f", "d1/g", "d1/x", "d2/h", "d2/l"}, 5);
}

static int look_dirs(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    (void)op;
    (void)w;
    return look_at(c, (const char *[]){"d1/s", "d2/t", "d2/u", "d1/s/in", "d2/t/in"}, 5);
}

static int list_d1(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    (void)op;
    (void)w;
    return list_at(c, (const char *[]){"d1"}, 1);
}

static int glance(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    struct mfs_attr attr;
    int rc = mfs_meta_lookup(c->meta, w->dir, w->name, &attr);

    (void)op;
    return rc ? rc : (int)attr.uid + 1;
}

const struct meta_op meta_looks[] = {{"look_files", look_files, NULL, NULL, 0},
                                     {"look_dirs", look_dirs, NULL, NULL, 0},
                                     {"list_d1", list_d1, NULL, NULL, 0}};
const size_t meta_nlooks = sizeof meta_looks / sizeof *meta_looks;

const struct meta_op meta_glances[] = {
    {"glance_f", glance, "d1/f", NULL, 0}, {"glance_g", glance, "d1/g", NULL, 0},
    {"glance_x", glance, "d1/x", NULL, 0}, {"glance_h", glance, "d2/h", NULL, 0},
    {"glance_s", glance, "d1/s", NULL, 0}, {"glance_t", glance, "d2/t", NULL, 0}};
const size_t meta_nglances = sizeof meta_glances / sizeof *meta_glances;

/* --- the whole ----------------------------------------------------------------------------------
 */

static int by_name(const void *a, const void *b)
{
    const struct mfs_dirent *x = a, *y = b;

    return strcmp(x->name, y->name);
}

#define DEPTH_MAX  4000
#define PATH_SHOWN 128 /* of deep ones only the beginning */

/* Sees every entry, directories before what is in them. */
typedef int visit_fn(void *arg, const char *path, uint64_t parent, const struct mfs_attr *attr);

static int visit(struct meta_client *c, uint64_t dir, const char *path, unsigned depth,
                 visit_fn *fn, void *arg)
{
    struct mfs_dirent *sorted;
    struct mfs_listing *l;
    size_t n;
    int rc = depth > DEPTH_MAX ? -ELOOP : mfs_meta_list(c->meta, dir, &l);

    if (rc)
        return rc;
    n = mfs_listing_count(l);
    sorted = calloc(n, sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        sorted[i] = mfs_listing_at(l, i);
    qsort(sorted + 2, n - 2, sizeof *sorted, by_name);
    for (size_t i = 2; i < n && !rc; i++) {
        char below[PATH_SHOWN];
        struct mfs_attr attr;

        snprintf(below, sizeof below, "%s/%s", path, sorted[i].name);
        rc = mfs_meta_lookup(c->meta, dir, sorted[i].name, &attr);
        if (rc || attr.ino != sorted[i].ino || (attr.mode & S_IFMT) != sorted[i].type) {
            fprintf(stderr, "%s is listed, but look-up says %d\n", below, rc);
            rc = -EIO;
        }
        if (!rc)
            rc = fn(arg, below, dir, &attr);
        if (!rc && S_ISDIR(attr.mode))
            rc = visit(c, attr.ino, below, depth + 1, fn, arg);
    }
    free(sorted);
    mfs_listing_free(l);
    return rc;
}

struct dump {
    struct mfs_buf *out;
    enum meta_links links;
};

static int dump_entry(void *arg, const char *path, uint64_t parent, const struct mfs_attr *attr)
{
    struct dump *d = arg;
    bool dir = S_ISDIR(attr->mode);

    (void)parent;
    mfs_buf_printf(d->out, "%s %s %s", path, dir ? "dir" : "file",
                   attr->uid < sizeof label / sizeof *label ? label[attr->uid] : "?");
    if (d->links > (dir ? META_FILE_LINKS : META_NO_LINKS))
        mfs_buf_printf(d->out, " %u", attr->nlink);
    return mfs_buf_printf(d->out, "\n");
}

int meta_world_dump(struct meta_client *c, enum meta_links links, struct mfs_buf *out)
{
    struct dump d = {out, links};
    int rc = visit(c, root, "", 0, dump_entry, &d);

    return rc ? rc : mfs_buf_append(out, "", 1);
}

#define SEEN_MAX 8192

struct census {
    struct {
        uint64_t ino;
        uint32_t nlink, names;
        bool dir;
    } seen[SEEN_MAX];
    size_t n;
    int wrong;
};

static int count_entry(void *arg, const char *path, uint64_t parent, const struct mfs_attr *attr)
{
    struct census *s = arg;
    size_t i = 0;

    while (i < s->n && s->seen[i].ino != attr->ino)
        i++;
    if (i == SEEN_MAX)
        return -ENOMEM;
    if (i == s->n) {
        s->n++;
        s->seen[i].ino = attr->ino;
        s->seen[i].nlink = attr->nlink;
        s->seen[i].dir = S_ISDIR(attr->mode);
    } else if (s->seen[i].dir) {
        fprintf(stderr, "%s: a directory of two names\n", path);
        s->wrong++;
    }
    s->seen[i].names++;
    if (S_ISDIR(attr->mode) && attr->parent != parent) {
        fprintf(stderr, "%s: its parent is another\n", path);
        s->wrong++;
    }
    return 0;
}

/* Tells of an inode that the walk has not seen, and of what is in it. */
static void tell_nameless(struct meta_client *c, const struct census *s, uint64_t ino)
{
    struct mfs_listing *l = NULL;
    struct mfs_attr attr;
    size_t i = 0;

    while (i < s->n && s->seen[i].ino != ino)
        i++;
    if (i < s->n || ino == root || mfs_meta_getattr(c->meta, ino, &attr))
        return;
    fprintf(stderr, "nameless: %" PRIx64 " mode %o nlink %u parent %" PRIx64 "\n", ino, attr.mode,
            attr.nlink, attr.parent);
    if (!S_ISDIR(attr.mode) || mfs_meta_list(c->meta, ino, &l))
        return;
    for (i = 2; i < mfs_listing_count(l); i++)
        fprintf(stderr, "    %s: %" PRIx64 "\n", mfs_listing_at(l, i).name,
                mfs_listing_at(l, i).ino);
    mfs_listing_free(l);
}

int meta_world_check(struct meta_client *c, int64_t nameless)
{
    static struct census s;
    int64_t more;
    int rc;

    memset(&s, 0, sizeof s);
    rc = visit(c, root, "", 0, count_entry, &s);

    if (rc) {
        fprintf(stderr, "the tree can't be walked: %s\n", strerror(-rc));
        s.wrong++;
    }
    for (size_t i = 0; i < s.n; i++) {
        bool right =
            nameless ? s.seen[i].nlink >= s.seen[i].names : s.seen[i].nlink == s.seen[i].names;

        if (!s.seen[i].dir && !right) {
            fprintf(stderr, "a file of %u names counts %u\n", s.seen[i].names, s.seen[i].nlink);
            s.wrong++;
        }
    }
    more = meta_client_keys(c, "I*") - inodes - 1;
    if (more < (int64_t)s.n || more > (int64_t)s.n + nameless) {
        fprintf(stderr, "%lld inodes, but %zu have names\n", (long long)more, s.n);
        for (uint32_t part = 0; part < mfs_store_nparts(c->store); part++) {
            for (uint64_t n = 1; n < 100000; n++)
                tell_nameless(c, &s, (uint64_t)part << 48 | n);
        }
        s.wrong++;
    }
    return s.wrong;
}

static int remove_below(struct meta_client *c, uint64_t dir)
{
    struct mfs_listing *l;
    int rc = mfs_meta_list(c->meta, dir, &l);

    for (size_t i = 2; !rc && i < mfs_listing_count(l); i++) {
        struct mfs_dirent e = mfs_listing_at(l, i);

        if (S_ISDIR(e.type))
            rc = remove_below(c, e.ino);
        if (!rc)
            rc = S_ISDIR(e.type) ? mfs_meta_rmdir(c->meta, dir, e.name)
                                 : mfs_meta_unlink(c->meta, dir, e.name);
        if (rc)
            fprintf(stderr, "%s: can't be removed: %s\n", e.name, strerror(-rc));
    }
    if (!rc)
        mfs_listing_free(l);
    return rc;
}

int meta_world_remove(struct meta_client *c, int64_t nameless)
{
    int64_t left;
    int rc = remove_below(c, root);

    if (!rc && root != MFS_ROOT_INO)
        rc = mfs_meta_rmdir(c->meta, MFS_ROOT_INO, world);
    left = meta_client_keys(c, "I*") - inodes - (root == MFS_ROOT_INO);
    if (!rc && left > nameless) {
        fprintf(stderr, "%lld inodes are left\n", (long long)left);
        rc = -EIO;
    }
    return rc;
}
