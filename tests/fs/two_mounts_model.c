/* ctest: timeout=180
 *
 * Random operations by both mounts on one small tree, beside a model of it in this process's
 * memory. What every call returns must be what the model says, and after each the other mount is
 * asked: attributes, listings, content, by path and by directories and files that were opened long
 * before.
 *
 * What was written by a file that is still open counts for the other mount after fsync or close
 * only; the model keeps account of that and looks no earlier. */
#include "fs_pair.h"

enum { NODES = 48, NAMES = 5, CONTENT_MAX = PAIR_STRIPE + 300000, NONE = -1, ROOT = 0, CLEAN = -1 };

enum type { FREE, FILE_NODE, DIR_NODE, LINK_NODE };

struct node {
    enum type type;
    unsigned links;   /* of a file or symbolic link: its names */
    int parent;       /* of a directory */
    int child[NAMES]; /* of a directory: node or NONE */
    mode_t mode;
    size_t size;
    unsigned char *data;
    int fd[2];       /* open on each mount, or NONE */
    bool strayed[2]; /* a directory's: moved since it was opened, without its kernel knowing */
    int dirty;       /* the mount that has written and not yet synced, or CLEAN */
};

static struct node nodes[NODES];

static unsigned char buffer[CONTENT_MAX + 1];

/* --- the model ---------------------------------------------------------------------------------
 */

static int new_node(enum type type, int parent)
{
    for (int i = 0; i < NODES; i++) {
        if (nodes[i].type != FREE)
            continue;
        nodes[i] = (struct node){.type = type, .parent = parent, .links = 1, .dirty = CLEAN};
        nodes[i].fd[0] = nodes[i].fd[1] = NONE;
        for (int j = 0; j < NAMES; j++)
            nodes[i].child[j] = NONE;
        return i;
    }
    return NONE;
}

/* Forgets a node without a name once no file of it is open. */
static void release(int n)
{
    if (nodes[n].links || nodes[n].fd[0] != NONE || nodes[n].fd[1] != NONE)
        return;
    free(nodes[n].data);
    nodes[n] = (struct node){.type = FREE};
}

static void drop_name(int n)
{
    nodes[n].links--;
    if (nodes[n].type == DIR_NODE)
        nodes[n].links = 0;
    release(n);
}

static bool is_empty(int dir)
{
    for (int i = 0; i < NAMES; i++)
        if (nodes[dir].child[i] != NONE)
            return false;
    return true;
}

static bool is_below(int dir, int top)
{
    for (; dir != NONE; dir = nodes[dir].parent)
        if (dir == top)
            return true;
    return false;
}

static unsigned depth(int dir)
{
    unsigned d = 0;

    for (; dir != ROOT; dir = nodes[dir].parent)
        d++;
    return d;
}

static unsigned link_count(int n)
{
    unsigned links = 2;

    if (nodes[n].type != DIR_NODE)
        return nodes[n].links;
    for (int i = 0; i < NAMES; i++)
        if (nodes[n].child[i] != NONE && nodes[nodes[n].child[i]].type == DIR_NODE)
            links++;
    return links;
}

/* Some directory that has a name. */
static int draw_dir(struct pair *p)
{
    int n;

    do
        n = (int)pair_random(p, NODES);
    while (nodes[n].type != DIR_NODE || !nodes[n].links);
    return n;
}

/* --- from the model to calls -------------------------------------------------------------------
 */

/* How a call names an entry: relative to a directory kept open, or by its whole path. */
struct place {
    int dir, name; /* in the model */
    int at;        /* for the call */
    bool strayed;  /* relative to a directory that has strayed */
    char path[PAIR_PATH + 4 * NODES];
};

static void append_path(int dir, char *out)
{
    int i = 0;

    if (dir == ROOT)
        return;
    append_path(nodes[dir].parent, out);
    while (nodes[nodes[dir].parent].child[i] != dir)
        i++;
    sprintf(out + strlen(out), "n%d/", i);
}

/* NODES names of three characters each fit beside the lane's own path. */
static void path_of_dir(struct pair *p, int dir, int mount, char *out)
{
    sprintf(out, "%s/", p->dir[mount]);
    append_path(dir, out);
}

static void place_by_path(struct pair *p, int mount, struct place *at)
{
    at->at = AT_FDCWD;
    at->strayed = false;
    path_of_dir(p, at->dir, mount, at->path);
    sprintf(at->path + strlen(at->path), "n%d", at->name);
}

static void draw_place(struct pair *p, int mount, int dir, int name, struct place *out)
{
    out->dir = dir;
    out->name = name;
    if (nodes[dir].fd[mount] != NONE && pair_random(p, 2)) {
        out->at = nodes[dir].fd[mount];
        out->strayed = nodes[dir].strayed[mount];
        snprintf(out->path, sizeof out->path, "n%d", name);
        return;
    }
    place_by_path(p, mount, out);
}

/* Somewhere in the tree; mostly where there is an entry, or is none, as wanted. */
static void random_place(struct pair *p, int mount, bool taken, struct place *out)
{
    int dir, name, tries = pair_random(p, 8) ? 10 : 0;

    do {
        dir = draw_dir(p);
        name = (int)pair_random(p, NAMES);
    } while ((nodes[dir].child[name] != NONE) != taken && tries-- > 0);
    draw_place(p, mount, dir, name, out);
}

static int node_at(const struct place *at)
{
    return nodes[at->dir].child[at->name];
}

/* The call must have ended as the model says: 0, or -1 with that errno. */
static void expect_rc(int rc, int error, const char *what, const struct place *at)
{
    int got = rc < 0 ? errno : 0;

    if (got != error)
        fs_fail(__FILE__, __LINE__, "%s of %s: error %d, the model says %d", what, at->path, got,
                error);
}

static void sync_node(int n)
{
    if (nodes[n].dirty == CLEAN)
        return;
    OK(fsync(nodes[n].fd[nodes[n].dirty]));
    nodes[n].dirty = CLEAN;
}

/* --- operations ----------------------------------------------------------------------------------
 */

static void do_create(struct pair *p, int m)
{
    struct place at;
    int old, n, rc, error = 0;
    unsigned what = pair_random(p, 3);
    mode_t mode = 0600 | (mode_t)pair_random(p, 0200);

    random_place(p, m, false, &at);
    old = node_at(&at);
    if (old != NONE)
        error = EEXIST;
    else if (what == 1 && depth(at.dir) > 4)
        return;
    n = error ? NONE : new_node(what == 0 ? FILE_NODE : what == 1 ? DIR_NODE : LINK_NODE, at.dir);
    if (!error && n == NONE)
        return;
    if (what == 0) {
        rc = openat(at.at, at.path, O_RDWR | O_CREAT | O_EXCL, mode);
        if (rc >= 0)
            OK(close(rc));
    } else if (what == 1) {
        rc = mkdirat(at.at, at.path, mode);
    } else {
        mode = 0777;
        rc = symlinkat("nowhere", at.at, at.path);
    }
    expect_rc(rc, error, "create", &at);
    if (error)
        return;
    nodes[at.dir].child[at.name] = n;
    nodes[n].mode = mode & ~(what == 2 ? 0 : 022);
    nodes[n].size = what == 2 ? 7 : 0;
}

static void do_link(struct pair *p, int m)
{
    struct place from, to;
    int n, error = 0;

    random_place(p, m, true, &from);
    random_place(p, m, pair_random(p, 2), &to);
    n = node_at(&from);
    if (n == NONE)
        error = ENOENT;
    else if (node_at(&to) != NONE)
        error = EEXIST;
    else if (nodes[n].type == DIR_NODE)
        error = EPERM;
    expect_rc(linkat(from.at, from.path, to.at, to.path, 0), error, "link", &to);
    if (error)
        return;
    nodes[n].links++;
    nodes[to.dir].child[to.name] = n;
}

static void do_remove(struct pair *p, int m)
{
    struct place at;
    bool dir = pair_random(p, 3) == 0;
    int n, error = 0;

    random_place(p, m, true, &at);
    n = node_at(&at);
    if (n == NONE)
        error = ENOENT;
    else if (dir && nodes[n].type != DIR_NODE)
        error = ENOTDIR;
    else if (!dir && nodes[n].type == DIR_NODE)
        error = EISDIR;
    else if (dir && !is_empty(n))
        error = ENOTEMPTY;
    expect_rc(unlinkat(at.at, at.path, dir ? AT_REMOVEDIR : 0), error, dir ? "rmdir" : "unlink",
              &at);
    if (error)
        return;
    nodes[at.dir].child[at.name] = NONE;
    drop_name(n);
}

static int rename_error(const struct place *from, const struct place *to, unsigned flags)
{
    int n = node_at(from), t = node_at(to);
    bool exchange = flags == RENAME_EXCHANGE;

    if (n == NONE)
        return ENOENT;
    if (flags == RENAME_NOREPLACE && t != NONE)
        return EEXIST;
    if (exchange && t == NONE)
        return ENOENT;
    if (nodes[n].type == DIR_NODE && is_below(to->dir, n))
        return EINVAL;
    if (t != NONE && nodes[t].type == DIR_NODE && is_below(from->dir, t))
        return exchange ? EINVAL : ENOTEMPTY;
    if (t == NONE || t == n || exchange)
        return 0;
    if (nodes[n].type == DIR_NODE && nodes[t].type != DIR_NODE)
        return ENOTDIR;
    if (nodes[n].type != DIR_NODE && nodes[t].type == DIR_NODE)
        return EISDIR;
    return nodes[t].type == DIR_NODE && !is_empty(t) ? ENOTEMPTY : 0;
}

static void set_child(int dir, int name, int n)
{
    nodes[dir].child[name] = n;
    if (n != NONE && nodes[n].type == DIR_NODE)
        nodes[n].parent = dir;
}

/* A directory at or below n that is open goes along, but its kernel does not see where to: not that
 * of the other mount, nor this one's when it did not see the whole of the way. */
static void stray(int n, int mover, bool unseen)
{
    for (int i = 0; i < NODES; i++) {
        if (nodes[i].type != DIR_NODE || !nodes[i].links || !is_below(i, n))
            continue;
        nodes[i].strayed[!mover] = true;
        if (unseen)
            nodes[i].strayed[mover] = true;
    }
}

/* A kernel believes a directory that has strayed to be below what it was below before: it refuses
 * by itself what would make a loop there, and of a loop that it does not see it is not the first
 * thing that is refused (docs/LIMITS.md). By paths all is right. */
static int do_rename_call(struct pair *p, int m, struct place *from, struct place *to,
                          unsigned flags, int error)
{
    int rc = renameat2(from->at, from->path, to->at, to->path, flags);

    if (rc == 0 || errno == error || errno == ESTALE || errno == ELOOP)
        return rc;
    if (!from->strayed && !to->strayed)
        return rc;
    place_by_path(p, m, from);
    place_by_path(p, m, to);
    return renameat2(from->at, from->path, to->at, to->path, flags);
}

static void do_rename(struct pair *p, int m)
{
    static const unsigned flag[] = {0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_EXCHANGE};
    unsigned flags = flag[pair_random(p, 6)];
    struct place from, to;
    int n, t, error;
    bool unseen;

    random_place(p, m, true, &from);
    random_place(p, m, pair_random(p, 2), &to);
    n = node_at(&from);
    t = node_at(&to);
    if (depth(to.dir) > 4 || (flags == RENAME_EXCHANGE && depth(from.dir) > 4))
        return; /* names would become too long for this program */
    if (n != NONE && n == t && nodes[n].type == DIR_NODE && from.strayed != to.strayed)
        return; /* a kernel takes these for two, one of which is replaced */
    error = rename_error(&from, &to, flags);
    expect_rc(do_rename_call(p, m, &from, &to, flags, error), error, "rename", &to);
    if (error || n == t)
        return;
    unseen = from.strayed || to.strayed;
    set_child(to.dir, to.name, n);
    set_child(from.dir, from.name, flags == RENAME_EXCHANGE ? t : NONE);
    stray(n, m, unseen);
    if (flags == RENAME_EXCHANGE)
        stray(t, m, unseen);
    else if (t != NONE)
        drop_name(t);
}

/* Opens a file or directory and keeps it, or closes one that was kept. */
static void do_open_close(struct pair *p, int m)
{
    int n = (int)pair_random(p, NODES);
    struct place at;

    if (nodes[n].type != FREE && nodes[n].fd[m] != NONE) {
        OK(close(nodes[n].fd[m]));
        nodes[n].fd[m] = NONE;
        if (nodes[n].dirty == m)
            nodes[n].dirty = CLEAN;
        release(n);
        return;
    }
    random_place(p, m, true, &at);
    n = node_at(&at);
    if (n == NONE || nodes[n].type == LINK_NODE || nodes[n].fd[m] != NONE)
        return;
    nodes[n].fd[m] =
        openat(at.at, at.path, nodes[n].type == DIR_NODE ? O_RDONLY | O_DIRECTORY : O_RDWR);
    OK(nodes[n].fd[m]);
    nodes[n].strayed[m] = at.strayed;
}

static void model_write(int n, size_t off, size_t len, uint64_t seed)
{
    struct node *f = &nodes[n];

    if (off + len > f->size) {
        f->data = realloc(f->data, off + len);
        CHECK(f->data);
        memset(f->data + f->size, 0, off + len - f->size);
        f->size = off + len;
    }
    fs_fill(f->data + off, len, off, seed);
}

static void draw_range(struct pair *p, int n, size_t *off, size_t *len)
{
    *len = 1 + pair_random(p, pair_random(p, 8) ? 5000 : 400000);
    *off = pair_random(p, (unsigned)nodes[n].size + 3000);
    if (nodes[n].size > PAIR_STRIPE && pair_random(p, 2))
        *off = PAIR_STRIPE - (*len + 1) / 2; /* in two stripes */
    if (*off + *len > CONTENT_MAX)
        *off = CONTENT_MAX - *len;
}

/* Writes by a file that is open, perhaps unlinked, and may or may not sync. */
static void do_write_open(struct pair *p, int m)
{
    int n = (int)pair_random(p, NODES);
    size_t off, len;

    if (nodes[n].type != FILE_NODE || nodes[n].fd[m] == NONE)
        return;
    if (nodes[n].dirty == !m)
        sync_node(n);
    draw_range(p, n, &off, &len);
    model_write(n, off, len, pair_draw(&p->random));
    fs_write_at(nodes[n].fd[m], nodes[n].data + off, len, (off_t)off);
    nodes[n].dirty = m;
    if (pair_random(p, 2))
        sync_node(n);
}

/* Opens by name, writes, closes. */
static void do_write(struct pair *p, int m)
{
    struct place at;
    size_t off, len;
    int n, fd;
    bool trunc = pair_random(p, 4) == 0;

    random_place(p, m, true, &at);
    n = node_at(&at);
    if (n == NONE || nodes[n].type != FILE_NODE)
        return;
    sync_node(n);
    fd = openat(at.at, at.path, O_WRONLY | (trunc ? O_TRUNC : 0));
    OK(fd);
    if (trunc)
        nodes[n].size = 0;
    draw_range(p, n, &off, &len);
    model_write(n, off, len, pair_draw(&p->random));
    fs_write_at(fd, nodes[n].data + off, len, (off_t)off);
    OK(close(fd));
}

static void do_truncate(struct pair *p, int m)
{
    int n = (int)pair_random(p, NODES);
    size_t size = pair_random(p, pair_random(p, 4) ? 9000 : CONTENT_MAX);

    if (nodes[n].type != FILE_NODE || nodes[n].fd[m] == NONE)
        return;
    sync_node(n);
    OK(ftruncate(nodes[n].fd[m], (off_t)size));
    nodes[n].data = realloc(nodes[n].data, size + 1);
    CHECK(nodes[n].data);
    if (size > nodes[n].size)
        memset(nodes[n].data + nodes[n].size, 0, size - nodes[n].size);
    nodes[n].size = size;
}

static void do_chmod(struct pair *p, int m)
{
    mode_t mode = 0700 | (mode_t)pair_random(p, 0100);
    struct place at;
    int n;

    random_place(p, m, true, &at);
    n = node_at(&at);
    if (n != NONE && nodes[n].type == LINK_NODE)
        return;
    expect_rc(fchmodat(at.at, at.path, mode, 0), n == NONE ? ENOENT : 0, "chmod", &at);
    if (n != NONE)
        nodes[n].mode = mode;
}

/* --- what a mount sees
 * ---------------------------------------------------------------------------- */

static void same_as_model(int n, const struct stat *st, int mount, const char *path)
{
    static const mode_t kind[] = {0, S_IFREG, S_IFDIR, S_IFLNK};

    /* Of a directory that is gone a mount tells what it saw last. */
    if (nodes[n].type == DIR_NODE && !nodes[n].links)
        return;
    if ((st->st_mode & S_IFMT) != kind[nodes[n].type] || (st->st_mode & 07777) != nodes[n].mode)
        fs_fail(__FILE__, __LINE__, "%s: mode %o, not %o", path, st->st_mode,
                kind[nodes[n].type] | nodes[n].mode);
    /* Of a directory other mounts may see it a second late. */
    if (nodes[n].type == DIR_NODE && st->st_nlink != 0 && nodes[n].links)
        return;
    if (st->st_nlink != (nodes[n].links ? link_count(n) : 0))
        fs_fail(__FILE__, __LINE__, "%s: %u links, not %u", path, (unsigned)st->st_nlink,
                link_count(n));
    if (nodes[n].type == DIR_NODE || nodes[n].dirty == !mount)
        return;
    if ((size_t)st->st_size != nodes[n].size)
        fs_fail(__FILE__, __LINE__, "%s: size %lld, not %zu", path, (long long)st->st_size,
                nodes[n].size);
}

static void same_content(int n, int fd, const char *path)
{
    EQUAL(nodes[n].size, pread(fd, buffer, nodes[n].size + 1, 0));
    for (size_t i = 0; i < nodes[n].size; i++)
        if (buffer[i] != nodes[n].data[i])
            fs_fail(__FILE__, __LINE__, "%s: byte %zu of %zu is %02x, not %02x", path, i,
                    nodes[n].size, buffer[i], nodes[n].data[i]);
}

static void look_at_name(struct pair *p, int m)
{
    struct place at;
    struct stat st;
    int n, rc, fd;

    random_place(p, m, true, &at);
    n = node_at(&at);
    rc = fstatat(at.at, at.path, &st, AT_SYMLINK_NOFOLLOW);
    expect_rc(rc, n == NONE ? ENOENT : 0, "stat", &at);
    if (n == NONE)
        return;
    same_as_model(n, &st, m, at.path);
    if (nodes[n].type != FILE_NODE || nodes[n].dirty == !m)
        return;
    fd = openat(at.at, at.path, O_RDONLY);
    OK(fd);
    same_content(n, fd, at.path);
    OK(close(fd));
}

static void look_by_open_file(struct pair *p, int m)
{
    int n = (int)pair_random(p, NODES);
    struct stat st;

    if (nodes[n].type == FREE || nodes[n].fd[m] == NONE)
        return;
    OK(fstat(nodes[n].fd[m], &st));
    same_as_model(n, &st, m, "an open file");
    if (nodes[n].type == FILE_NODE && nodes[n].dirty != !m)
        same_content(n, nodes[n].fd[m], "an open file");
}

static void look_at_listing(struct pair *p, int m)
{
    int dir = draw_dir(p), count[NAMES] = {0};
    struct dirent *e;
    char path[PAIR_PATH + 4 * NODES];
    DIR *d;

    path_of_dir(p, dir, m, path);
    d = opendir(path);
    CHECK(d);
    for (errno = 0; (e = readdir(d)); errno = 0)
        if (e->d_name[0] != '.')
            count[e->d_name[1] - '0']++;
    EQUAL(0, errno);
    OK(closedir(d));
    for (int i = 0; i < NAMES; i++)
        if (count[i] != (nodes[dir].child[i] != NONE))
            fs_fail(__FILE__, __LINE__, "%sn%d is listed %d times", path, i, count[i]);
}

static void step(struct pair *p)
{
    static void (*const operation[])(struct pair *, int) = {
        do_create,   do_create,     do_create, do_link,  do_remove,     do_remove,
        do_rename,   do_rename,     do_rename, do_write, do_open_close, do_open_close,
        do_truncate, do_write_open, do_write,  do_chmod};
    static void (*const look[])(struct pair *, int) = {look_at_name, look_at_name,
                                                       look_by_open_file, look_at_listing};
    int m = (int)pair_random(p, 2);

    operation[pair_random(p, sizeof operation / sizeof operation[0])](p, m);
    for (unsigned i = 0; i < 3; i++)
        look[pair_random(p, 4)](p, pair_random(p, 4) ? !m : m);
}

/* Many steps a round; they share one tree, made in the first. */
static void model(struct pair *p)
{
    if (p->round == 0) {
        CHECK(new_node(DIR_NODE, NONE) == ROOT);
        nodes[ROOT].mode = 0755;
    }
    for (unsigned i = 0; i < 20; i++)
        step(p);
}

int main(int argc, char **argv)
{
    static const struct pair_scenario scenarios[] = {{"model", .script = model}, {NULL}};

    return pair_main(argc, argv, scenarios);
}
