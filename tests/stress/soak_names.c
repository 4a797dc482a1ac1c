/* Names: files and directories of one process that are made, moved, linked, removed and listed
 * through every mount. A file's size says which it is, so that it is known although its content be
 * lost. One change at a time: when it fails, the names in it are looked at until they can be seen,
 * and they must be all as before or all as after it. If it failed as its client died, other mounts
 * may go on to show the names as before for a while: then nothing is done until all show the same.
 *
 * A change that was cut short may have left a count of links that is too high by one
 * (docs/design/metadata.md, "What may leak"). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "soak.h"

#define NAMES     24U
#define NOTHING   0U
#define FIRST     1U /* of the files: sizes 1 and on */
#define LAST      4000U
#define EMPTY     5000U /* made, but what was to be written was not */
#define DIRECTORY 6000U

struct change {
    unsigned name[2]; /* the same twice: just one */
    unsigned before[2], after[2];
};

struct names {
    unsigned now[NAMES];            /* NOTHING, EMPTY, DIRECTORY, or which file */
    unsigned next;                  /* file */
    unsigned char leaked[LAST + 1]; /* links of a file that may be counted for nothing, at most */
    bool unsure;
    struct change change; /* then */
    int64_t stale_until;  /* others may show what was before it */
};

static char *name_path(struct soak_worker *w, unsigned mount, char out[SOAK_PATH], unsigned name)
{
    return soak_path(w, mount, out, "names%u/%u/%u", w->id, name % 2, name);
}

static unsigned links_of(const struct names *all, unsigned what)
{
    unsigned n = 0;

    for (unsigned i = 0; i < NAMES; i++)
        n += all->now[i] == what;
    return n;
}

/* What a name leads to. */
struct seen {
    unsigned what, links;
    uint64_t ino; /* 0: nothing */
};

/* 0, or a negative errno when it can't be seen. */
static int see(struct soak_worker *w, unsigned mount, unsigned name, struct seen *seen)
{
    char path[SOAK_PATH];
    struct stat st;
    int rc = soak_stat(w, mount, name_path(w, mount, path, name), &st);

    *seen = (struct seen){.what = NOTHING};
    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        return rc;
    seen->links = (unsigned)st.st_nlink;
    seen->what = S_ISDIR(st.st_mode) ? DIRECTORY : st.st_size ? (unsigned)st.st_size : EMPTY;
    seen->ino = st.st_ino;
    return 0;
}

static bool is(const unsigned now[2], const struct seen seen[2])
{
    return now[0] == seen[0].what && now[1] == seen[1].what;
}

/* Do all mounts show the same? 1, 0, or a negative errno. */
static int agree(struct soak_worker *w)
{
    for (unsigned name = 0; name < NAMES; name++) {
        struct seen first, other;
        int rc = see(w, 0, name, &first);

        for (unsigned m = 1; rc == 0 && m < w->s->mounts; m++) {
            rc = see(w, m, name, &other);
            if (rc == 0 && (first.what != other.what || first.links != other.links))
                return 0;
        }
        if (rc < 0)
            return rc;
    }
    return 1;
}

/* Of a change that failed: before, after, or, of a file that was to be made, empty. */
static int resolve(struct soak_worker *w, void *arg)
{
    unsigned mount = (unsigned)soak_rnd(w, w->s->mounts);
    struct names *all = arg;
    struct change *c = &all->change;
    struct seen seen[2];

    if (!all->unsure)
        return 0;
    if (soak_now() < all->stale_until) {
        int rc = agree(w);

        if (rc <= 0)
            return rc ? rc : -EAGAIN;
    }
    for (unsigned i = 0; i < 2; i++) {
        int rc = see(w, mount, c->name[i], &seen[i]);

        if (rc < 0)
            return rc;
    }
    if (!is(c->before, seen) && !is(c->after, seen) &&
        !(seen[0].what == EMPTY && c->before[0] == NOTHING && c->name[0] == c->name[1]))
        soak_wrong(w->s,
                   "%s/soak/names%u: %u and %u are %u and %u (inodes %llx and %llx); before the "
                   "change that failed %u and %u, after it %u and %u",
                   w->s->mount[mount], w->id, c->name[0], c->name[1], seen[0].what, seen[1].what,
                   (unsigned long long)seen[0].ino, (unsigned long long)seen[1].ino, c->before[0],
                   c->before[1], c->after[0], c->after[1]);
    all->now[c->name[0]] = seen[0].what;
    all->now[c->name[1]] = seen[1].what;
    all->unsure = false;
    return 0;
}

/* --- looks ----------------------------------------------------------------------------------- */

static unsigned char content(const struct soak_worker *w, unsigned what)
{
    return (unsigned char)soak_mix(w->s->seed ^ (w->id << 16 | what));
}

static int look_content(struct soak_worker *w, unsigned what, const char *path, int flags)
{
    int fd = soak_open(w, path, O_RDONLY | flags);
    uint64_t ino;
    ssize_t n;

    if (fd < 0)
        return fd == -ENOENT ? -EAGAIN : fd; /* it was just there: its mount has gone */
    ino = soak_ino(fd);
    n = soak_read(w, fd, w->buf, 2 * SOAK_BLOCK, 0, path);
    soak_close(w, fd, path);
    if (n < 0)
        return (int)n;
    for (ssize_t i = 0; i < n; i++)
        if (w->buf[i] != content(w, what)) {
            soak_wrong_file(w->s, path, ino, "%02x at %zd, not %02x", w->buf[i], i,
                            content(w, what));
            break;
        }
    if ((unsigned)n != what)
        soak_wrong_file(w->s, path, ino, "%zd bytes, not %u", n, what);
    return 0;
}

struct look {
    struct names *all;
    unsigned mount, name;
    int flags;
};

static int look(struct soak_worker *w, void *arg)
{
    struct look *l = arg;
    unsigned want = l->all->now[l->name];
    char path[SOAK_PATH];
    struct seen seen;
    int rc = see(w, l->mount, l->name, &seen);

    if (rc < 0)
        return rc;
    name_path(w, l->mount, path, l->name);
    if (seen.what != want) {
        soak_wrong_file(w->s, path, seen.ino, "is %u, not %u", seen.what, want);
        l->all->now[l->name] = seen.what;
    } else if (want && want <= LAST) {
        unsigned known = links_of(l->all, want);

        if (seen.links < known || seen.links > known + l->all->leaked[want])
            soak_wrong_file(w->s, path, seen.ino, "%u links, not %u", seen.links, known);
        rc = look_content(w, want, path, l->flags);
    }
    atomic_fetch_add(&w->s->verified, rc == 0);
    return rc;
}

static int list_half(struct soak_worker *w, struct names *all, unsigned mount, unsigned half)
{
    bool seen[NAMES] = {false};
    char path[SOAK_PATH];
    struct dirent *e;
    int rc;
    DIR *dir;

    soak_path(w, mount, path, "names%u/%u", w->id, half);
    soak_begin(w, SOAK_LIST, path);
    dir = opendir(path);
    rc = dir ? 0 : -errno;
    while (dir && (errno = 0, e = readdir(dir))) {
        unsigned long i = strtoul(e->d_name, NULL, 10);

        if (e->d_name[0] == '.')
            continue;
        if (i >= NAMES || i % 2 != half || seen[i] || all->now[i] == NOTHING)
            soak_wrong(w->s, "list %s: \"%s\" (inode %llx) should not be there", path, e->d_name,
                       (unsigned long long)e->d_ino);
        else
            seen[i] = true;
    }
    if (rc == 0)
        rc = -errno;
    if (dir)
        closedir(dir);
    if (soak_end(w, SOAK_LIST, rc, path) < 0)
        return rc;
    for (unsigned i = half; i < NAMES; i += 2)
        if (all->now[i] != NOTHING && !seen[i])
            soak_wrong(w->s, "list %s: \"%u\" is missing", path, i);
    return 0;
}

static int list(struct soak_worker *w, void *arg)
{
    struct look *l = arg;
    int rc = list_half(w, l->all, l->mount, 0);

    return rc ? rc : list_half(w, l->all, l->mount, 1);
}

/* --- changes --------------------------------------------------------------------------------- */

static int make_file(struct soak_worker *w, const char *path, unsigned what)
{
    int fd = soak_open(w, path, O_WRONLY | O_CREAT | O_EXCL), rc, closed;

    if (fd < 0)
        return fd;
    memset(w->buf, content(w, what), what);
    rc = soak_write(w, fd, w->buf, what, 0, path);
    closed = soak_close(w, fd, path);
    return rc ? rc : closed;
}

static int make(struct soak_worker *w, struct names *all, unsigned name)
{
    struct change *c = &all->change;
    char path[SOAK_PATH];

    name_path(w, w->mount, path, name);
    *c = (struct change){.name = {name, name}, .after = {DIRECTORY, DIRECTORY}};
    if (soak_rnd(w, 4) == 0)
        return soak_mkdir(w, path);
    while (links_of(all, all->next) || all->next < FIRST || all->next > LAST)
        all->next = FIRST + all->next % LAST;
    c->after[0] = c->after[1] = all->next;
    all->leaked[all->next] = 0;
    return make_file(w, path, all->next++);
}

static int drop(struct soak_worker *w, struct names *all, unsigned name)
{
    unsigned now = all->now[name];
    char path[SOAK_PATH];

    name_path(w, w->mount, path, name);
    all->change = (struct change){.name = {name, name}, .before = {now, now}};
    return now == DIRECTORY ? soak_rmdir(w, path) : soak_unlink(w, path);
}

static int move(struct soak_worker *w, struct names *all, unsigned from, unsigned to, bool link)
{
    unsigned a = all->now[from], b = all->now[to];
    char path[SOAK_PATH], other[SOAK_PATH];

    all->change = (struct change){.name = {from, to}, .before = {a, b}, .after = {link ? a : 0, a}};
    name_path(w, w->mount, path, from);
    name_path(w, w->mount, other, to);
    return link ? soak_link(w, path, other) : soak_rename(w, path, other);
}

/* The file that gains a name is counted before it has it, and one that loses a name after that. */
static void note_leak(struct names *all)
{
    const struct change *c = &all->change;
    unsigned gains = c->after[0] == c->before[0] ? c->after[1] : NOTHING;
    unsigned loses = c->after[0] != c->before[0] ? c->before[1] : NOTHING;

    if (gains && gains <= LAST)
        all->leaked[gains]++;
    if (loses && loses <= LAST)
        all->leaked[loses]++;
}

static void change(struct soak_worker *w, struct names *all)
{
    unsigned i = (unsigned)soak_rnd(w, NAMES), j = (unsigned)soak_rnd(w, NAMES);
    unsigned a = all->now[i], b = all->now[j];
    bool link = soak_rnd(w, 4) == 0 && a != DIRECTORY && b == NOTHING;
    int rc;

    if (a == NOTHING)
        rc = make(w, all, i);
    else if (i == j || soak_rnd(w, 4) == 0)
        rc = drop(w, all, i);
    else if (b == NOTHING || (a == DIRECTORY) == (b == DIRECTORY)) {
        if (a == b && a != DIRECTORY)
            return; /* a rename to another name of the same file does nothing */
        rc = move(w, all, i, j, link);
    } else
        return;
    if (rc < 0) {
        all->unsure = true;
        all->stale_until = soak_stale_until(rc);
        note_leak(all);
        atomic_fetch_add(&w->s->unsure, 1);
        return;
    }
    all->now[all->change.name[0]] = all->change.after[0];
    all->now[all->change.name[1]] = all->change.after[1];
}

static void step(struct soak_worker *w, struct names *all)
{
    struct look l = {.all = all, .mount = (unsigned)soak_rnd(w, w->s->mounts)};

    l.name = (unsigned)soak_rnd(w, NAMES);
    if (resolve(w, all) < 0)
        usleep(50000);
    else if (soak_rnd(w, 3) == 0)
        look(w, &l);
    else if (soak_rnd(w, 10) == 0)
        list(w, &l);
    else
        change(w, all);
}

static void last_looks(struct soak_worker *w, struct names *all)
{
    struct look l = {.all = all, .flags = O_DIRECT};
    char path[SOAK_PATH];
    int rc = soak_settle(w, resolve, all);

    for (l.mount = 0; l.mount < w->s->mounts; l.mount++) {
        if (rc == 0)
            rc = soak_settle(w, list, &l);
        if (rc < 0) {
            soak_wrong(w->s, "names%u can't be seen by %s in the end: %s", w->id,
                       w->s->mount[l.mount], strerror(-rc));
            return;
        }
    }
    for (l.name = 0; l.name < NAMES; l.name++) {
        for (l.mount = 0, rc = 0; rc == 0 && l.mount < w->s->mounts; l.mount++)
            rc = soak_settle(w, look, &l);
        if (rc < 0)
            soak_gone(w, name_path(w, w->mount, path, l.name), rc);
    }
}

void soak_names(struct soak_worker *w)
{
    struct names *all = calloc(1, sizeof *all);
    char path[SOAK_PATH];

    if (!all || !soak_make_dir(w, soak_path(w, w->mount, path, "names%u", w->id)) ||
        !soak_make_dir(w, soak_path(w, w->mount, path, "names%u/0", w->id)) ||
        !soak_make_dir(w, soak_path(w, w->mount, path, "names%u/1", w->id)))
        abort();
    all->next = FIRST;
    while (soak_go_on(w))
        step(w, all);
    last_looks(w, all);
    free(all);
}
