/* ctest: timeout=180
 *
 * Random operations by both mounts on one small tree, beside a model of it in this process's
 * memory. What every call returns must be what the model says, and after each the other mount is
 * asked: attributes, listings, content, by path and by directories and files that were opened long
 * before.
 *
 * What was written by a file that is still open counts for the other mount after fsync or close
 * only; the model keeps account of that and looks no earlier. */
#include "two_mounts_model.h"

static unsigned char buffer[CONTENT_MAX + 1];

/* --- operations ----------------------------------------------------------------------------------
 */

static void do_create(struct pair *p, int m)
{
    struct place at;
    int old, n, rc, error = 0;
    unsigned what = pair_random(p, 3);
    mode_t mode = 0600 | (mode_t)pair_random(p, 0200);

    model_random_place(p, m, false, &at);
    old = model_node_at(&at);
    if (old != NONE)
        error = EEXIST;
    else if (what == 1 && model_depth(at.dir) > 4)
        return;
    n = error ? NONE
              : model_new_node(what == 0   ? FILE_NODE
                               : what == 1 ? DIR_NODE
                                           : LINK_NODE,
                               at.dir);
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
    model_expect_rc(rc, error, "create", &at);
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

    model_random_place(p, m, true, &from);
    model_random_place(p, m, pair_random(p, 2), &to);
    n = model_node_at(&from);
    if (n == NONE)
        error = ENOENT;
    else if (model_node_at(&to) != NONE)
        error = EEXIST;
    else if (nodes[n].type == DIR_NODE)
        error = EPERM;
    model_expect_rc(linkat(from.at, from.path, to.at, to.path, 0), error, "link", &to);
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

    model_random_place(p, m, true, &at);
    n = model_node_at(&at);
    if (n == NONE)
        error = ENOENT;
    else if (dir && nodes[n].type != DIR_NODE)
        error = ENOTDIR;
    else if (!dir && nodes[n].type == DIR_NODE)
        error = EISDIR;
    else if (dir && !model_is_empty(n))
        error = ENOTEMPTY;
    model_expect_rc(unlinkat(at.at, at.path, dir ? AT_REMOVEDIR : 0), error,
                    dir ? "rmdir" : "unlink", &at);
    if (error)
        return;
    nodes[at.dir].child[at.name] = NONE;
    model_drop_name(n);
}

static int rename_error(const struct place *from, const struct place *to, unsigned flags)
{
    int n = model_node_at(from), t = model_node_at(to);
    bool exchange = flags == RENAME_EXCHANGE;

    if (n == NONE)
        return ENOENT;
    if (flags == RENAME_NOREPLACE && t != NONE)
        return EEXIST;
    if (exchange && t == NONE)
        return ENOENT;
    if (nodes[n].type == DIR_NODE && model_is_below(to->dir, n))
        return EINVAL;
    if (t != NONE && nodes[t].type == DIR_NODE && model_is_below(from->dir, t))
        return exchange ? EINVAL : ENOTEMPTY;
    if (t == NONE || t == n || exchange)
        return 0;
    if (nodes[n].type == DIR_NODE && nodes[t].type != DIR_NODE)
        return ENOTDIR;
    if (nodes[n].type != DIR_NODE && nodes[t].type == DIR_NODE)
        return EISDIR;
    return nodes[t].type == DIR_NODE && !model_is_empty(t) ? ENOTEMPTY : 0;
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
        if (nodes[i].type != DIR_NODE || !nodes[i].links || !model_is_below(i, n))
            continue;
        nodes[i].strayed[!mover] = true;
        if (unseen)
            nodes[i].strayed[mover] = true;
    }
}

/* A kernel believes a directory that has strayed to be below what it was below before: it refuses
 * by itself what would make a loop there, and of a loop that it does not see it is not the first
 * thing that is refused (docs/design/consistency.md). By paths all is right. */
static int do_rename_call(struct pair *p, int m, struct place *from, struct place *to,
                          unsigned flags, int error)
{
    int rc = renameat2(from->at, from->path, to->at, to->path, flags);

    if (rc == 0 || errno == error || errno == ESTALE || errno == ELOOP)
        return rc;
    if (!from->strayed && !to->strayed)
        return rc;
    model_place_by_path(p, m, from);
    model_place_by_path(p, m, to);
    return renameat2(from->at, from->path, to->at, to->path, flags);
}

static void do_rename(struct pair *p, int m)
{
    static const unsigned flag[] = {0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_EXCHANGE};
    unsigned flags = flag[pair_random(p, 6)];
    struct place from, to;
    int n, t, error;
    bool unseen;

    model_random_place(p, m, true, &from);
    model_random_place(p, m, pair_random(p, 2), &to);
    n = model_node_at(&from);
    t = model_node_at(&to);
    if (model_depth(to.dir) > 4 || (flags == RENAME_EXCHANGE && model_depth(from.dir) > 4))
        return; /* names would become too long for this program */
    if (n != NONE && n == t && nodes[n].type == DIR_NODE && from.strayed != to.strayed)
        return; /* a kernel takes these for two, one of which is replaced */
    error = rename_error(&from, &to, flags);
    model_expect_rc(do_rename_call(p, m, &from, &to, flags, error), error, "rename", &to);
    if (error || n == t)
        return;
    unseen = from.strayed || to.strayed;
    set_child(to.dir, to.name, n);
    set_child(from.dir, from.name, flags == RENAME_EXCHANGE ? t : NONE);
    stray(n, m, unseen);
    if (flags == RENAME_EXCHANGE)
        stray(t, m, unseen);
    else if (t != NONE)
        model_drop_name(t);
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
        model_release(n);
        return;
    }
    model_random_place(p, m, true, &at);
    n = model_node_at(&at);
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
        model_sync_node(n);
    draw_range(p, n, &off, &len);
    model_write(n, off, len, pair_draw(&p->random));
    fs_write_at(nodes[n].fd[m], nodes[n].data + off, len, (off_t)off);
    nodes[n].dirty = m;
    if (pair_random(p, 2))
        model_sync_node(n);
}

/* Opens by name, writes, closes. */
static void do_write(struct pair *p, int m)
{
    struct place at;
    size_t off, len;
    int n, fd;
    bool trunc = pair_random(p, 4) == 0;

    model_random_place(p, m, true, &at);
    n = model_node_at(&at);
    if (n == NONE || nodes[n].type != FILE_NODE)
        return;
    model_sync_node(n);
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
    model_sync_node(n);
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

    model_random_place(p, m, true, &at);
    n = model_node_at(&at);
    if (n != NONE && nodes[n].type == LINK_NODE)
        return;
    model_expect_rc(fchmodat(at.at, at.path, mode, 0), n == NONE ? ENOENT : 0, "chmod", &at);
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
    if (st->st_nlink != (nodes[n].links ? model_link_count(n) : 0))
        fs_fail(__FILE__, __LINE__, "%s: %u links, not %u", path, (unsigned)st->st_nlink,
                model_link_count(n));
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

    model_random_place(p, m, true, &at);
    n = model_node_at(&at);
    rc = fstatat(at.at, at.path, &st, AT_SYMLINK_NOFOLLOW);
    model_expect_rc(rc, n == NONE ? ENOENT : 0, "stat", &at);
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
    int dir = model_draw_dir(p), count[NAMES] = {0};
    struct dirent *e;
    char path[PAIR_PATH + 4 * NODES];
    DIR *d;

    model_path_of_dir(p, dir, m, path);
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
        CHECK(model_new_node(DIR_NODE, NONE) == ROOT);
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
