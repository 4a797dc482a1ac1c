#include "meta_world.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cluster/placement.h"
#include "meta_world_impl.h"

uint64_t meta_world_top;
static char world[16];
static int64_t inodes; /* before it was made */

/* Inodes of the beginning are told apart by their size (or uid for directories): names for them. */
enum { F = 1, G, H, D1, D2, S, T };
static const char *const label[] = {
    "new", "f", "g", "h", "d1", "d2", "s", "t", [META_WHITEOUT_UID] = "whiteout"};

int meta_world_add(struct meta_client *c, uint64_t dir, const char *name, uint32_t mode,
                   uint32_t id, uint64_t *ino)
{
    struct mfs_new new = {.mode = mode, .uid = id};
    struct mfs_attr attr;
    int rc = mfs_meta_mknod(c->meta, dir, name, &new, &attr);

    if (ino)
        *ino = attr.ino;
    return rc;
}

int meta_world_walk(struct meta_client *c, const char *path, uint64_t *dir, char *last, size_t n)
{
    char copy[32], *at = copy, *slash;
    struct mfs_attr attr;
    int rc;

    snprintf(copy, sizeof copy, "%s", path);
    *dir = meta_world_top;
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
        rc = meta_world_add(c, dir, name, S_IFREG | 0600, 0, NULL);
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
    rc = meta_world_add(c, dir, other, mode, id, ino);
    return rc ? rc : mfs_meta_rename(c->meta, dir, other, dir, name, 0);
}

void meta_world_root(struct meta_client *c, uint64_t dir)
{
    inodes = meta_client_keys(c, "I*") - 1;
    meta_world_top = dir;
}

int meta_world_make(struct meta_client *c)
{
    uint64_t d1, d2, f, s, t;
    static unsigned worlds;
    struct mfs_attr attr;
    int rc;

    snprintf(world, sizeof world, "w%u", worlds++);
    inodes = meta_client_keys(c, "I*");
    rc = meta_world_add(c, MFS_ROOT_INO, world, S_IFDIR | 0755, 0, &meta_world_top);
    if (!rc)
        rc = meta_world_add(c, meta_world_top, "d1", S_IFDIR | 0755, D1, &d1);
    if (!rc)
        rc = meta_world_add(c, meta_world_top, "d2", S_IFDIR | 0755, D2, &d2);
    if (!rc)
        rc = meta_world_add(c, d1, "f", S_IFREG | 0644, F, &f);
    if (!rc)
        rc = meta_world_add(c, d1, "g", S_IFREG | 0644, G, NULL);
    if (!rc)
        rc = meta_world_add(c, d1, "s", S_IFDIR | 0755, S, &s);
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
    int rc = visit(c, meta_world_top, "", 0, dump_entry, &d);

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
    if (i < s->n || ino == meta_world_top || mfs_meta_getattr(c->meta, ino, &attr))
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
    rc = visit(c, meta_world_top, "", 0, count_entry, &s);

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
                tell_nameless(c, &s, mfs_ino_make(part, n));
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
    int rc = remove_below(c, meta_world_top);

    if (!rc && meta_world_top != MFS_ROOT_INO)
        rc = mfs_meta_rmdir(c->meta, MFS_ROOT_INO, world);
    left = meta_client_keys(c, "I*") - inodes - (meta_world_top == MFS_ROOT_INO);
    if (!rc && left > nameless) {
        fprintf(stderr, "%lld inodes are left\n", (long long)left);
        rc = -EIO;
    }
    return rc;
}
