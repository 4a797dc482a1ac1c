/* ctest: timeout=180 long=25
 *
 * Listing a directory on one mount while the other makes and removes entries in it: what exists all
 * the time is listed exactly once, and a place remembered by telldir stays true. */
#include "fs_pair.h"

enum { STABLE = 300, CHURN = 60 };

static unsigned char seen[STABLE];

static void make_stable(struct pair *p, const char *dir)
{
    for (unsigned i = 0; i < STABLE; i++) {
        const char *path = pair_mine(p, "%s/stable%03u", dir, i);

        if (i % 10 == 0)
            OK(mkdir(path, 0755));
        else
            OK(close(pair_open(path, O_CREAT | O_EXCL | O_WRONLY)));
    }
}

/* Makes, removes and renames entries, so that the directory changes in every part. */
static void churn(struct pair *p, const char *dir, unsigned steps)
{
    for (unsigned i = 0; i < steps; i++) {
        const char *path = pair_mine(p, "%s/churn%02u", dir, pair_own_random(p, CHURN));
        const char *to = pair_mine(p, "%s/churn%02u", dir, pair_own_random(p, CHURN));

        switch (pair_own_random(p, 3)) {
        case 0:
            OK(close(pair_open(path, O_CREAT | O_WRONLY)));
            break;
        case 1:
            if (unlink(path) < 0)
                EQUAL(ENOENT, errno);
            break;
        default:
            if (rename(path, to) < 0)
                EQUAL(ENOENT, errno);
        }
    }
}

/* Counts a stable entry, which must not have come before. */
static void count(const struct dirent *e)
{
    unsigned i;

    if (strncmp(e->d_name, "stable", 6))
        return;
    i = (unsigned)strtoul(e->d_name + 6, NULL, 10);
    CHECK(i < STABLE);
    if (seen[i]++)
        fs_fail(__FILE__, __LINE__, "%s listed twice", e->d_name);
    EQUAL(i % 10 == 0 ? DT_DIR : DT_REG, e->d_type);
}

static void all_seen(void)
{
    for (unsigned i = 0; i < STABLE; i++)
        if (seen[i] != 1)
            fs_fail(__FILE__, __LINE__, "stable%03u was not listed", i);
}

static struct dirent *next(DIR *d)
{
    struct dirent *e;

    CHECK(d);
    errno = 0;
    e = readdir(d);
    if (!e)
        EQUAL(0, errno);
    return e;
}

/* The whole listing, once. */
static void list_all(DIR *d)
{
    struct dirent *e;

    memset(seen, 0, sizeof seen);
    while ((e = next(d)))
        count(e);
    all_seen();
}

/* Remembers a place in the middle, goes on, comes back to it, and finds the same rest. */
static void list_with_seek(struct pair *p, DIR *d)
{
    unsigned before = pair_own_random(p, STABLE);
    static unsigned char first[STABLE];
    struct dirent *e;
    long place;

    memset(seen, 0, sizeof seen);
    rewinddir(d);
    for (unsigned i = 0; i < before && (e = next(d)); i++)
        count(e);
    place = telldir(d);
    memcpy(first, seen, sizeof seen);
    while ((e = next(d)))
        count(e);
    all_seen();
    memcpy(seen, first, sizeof seen);
    seekdir(d, place);
    while ((e = next(d)))
        count(e);
    all_seen();
}

/* Side 0 changes the directory, side 1 lists it, by a directory opened afresh or kept. */
static void listing(struct pair *p)
{
    DIR *d;

    if (p->side == 0 && p->round == 0) {
        OK(mkdir(pair_mine(p, "dir"), 0755));
        make_stable(p, "dir");
    }
    pair_meet(p);
    if (p->side == 0) {
        churn(p, "dir", 300);
        atomic_store(&p->shared->value[0], 1);
        return;
    }
    d = opendir(pair_mine(p, "dir"));
    CHECK(d);
    while (!atomic_load(&p->shared->value[0])) {
        if (pair_own_random(p, 2)) {
            rewinddir(d);
            list_all(d);
        } else {
            list_with_seek(p, d);
        }
        if (pair_own_random(p, 3) == 0) {
            OK(closedir(d));
            d = opendir(pair_mine(p, "dir"));
            CHECK(d);
        }
    }
    OK(closedir(d));
}

/* A listing begun before many entries go, read on after they went: the rest is complete. */
static void listing_paused(struct pair *p)
{
    struct dirent *e;
    DIR *d = NULL;

    if (p->side == 0) {
        OK(mkdir(pair_mine(p, "paused"), 0755));
        make_stable(p, "paused");
        churn(p, "paused", 100);
    }
    pair_meet(p);
    memset(seen, 0, sizeof seen);
    if (p->side == 1) {
        d = opendir(pair_mine(p, "paused"));
        CHECK(d);
        for (unsigned i = pair_own_random(p, STABLE); i && (e = next(d)); i--)
            count(e);
    }
    pair_meet(p);
    if (p->side == 0)
        for (unsigned i = 0; i < CHURN; i++)
            if (unlink(pair_mine(p, "paused/churn%02u", i)) < 0)
                EQUAL(ENOENT, errno);
    pair_meet(p);
    if (p->side == 1) {
        while ((e = next(d)))
            count(e);
        all_seen();
        OK(closedir(d));
    }
    pair_meet(p);
    if (p->side == 0)
        pair_remove_tree(pair_mine(p, "paused"));
}

/* rm -rf as programs do it: list, remove what was listed, until the directory is empty; from both.
 */
static void emptied(struct pair *p)
{
    struct dirent *e;
    DIR *d;

    if (p->side == 0) {
        OK(mkdir(pair_mine(p, "emptied"), 0755));
        make_stable(p, "emptied");
    }
    pair_meet(p);
    d = opendir(pair_mine(p, "emptied"));
    CHECK(d);
    while ((e = next(d))) {
        if (e->d_name[0] == '.')
            continue;
        if (remove(pair_mine(p, "emptied/%s", e->d_name)) < 0)
            EQUAL(ENOENT, errno);
    }
    OK(closedir(d));
    pair_meet(p);
    if (p->side == 0)
        OK(rmdir(pair_mine(p, "emptied")));
}

/* `ls -l` on one mount, which makes its kernel remember what it listed, while the other mount
 * changes these files, each once: after that only the new state is seen. */
static void change(struct pair *p, unsigned i)
{
    const char *path = pair_mine(p, "shown%u/file%03u", p->round, i);

    if (i % 4 == 0)
        OK(chmod(path, 0600));
    else if (i % 4 == 1)
        fs_put(path, "longer", 6);
    else if (i % 4 == 2)
        OK(unlink(path));
    else
        OK(rename(path, pair_mine(p, "shown%u/moved%03u", p->round, i)));
}

static void check_changed(struct pair *p, unsigned i)
{
    const char *path = pair_mine(p, "shown%u/file%03u", p->round, i);
    struct stat st;
    int rc = stat(path, &st);

    if (i % 4 >= 2)
        CHECK(rc < 0 && errno == ENOENT);
    else
        CHECK(rc == 0 && (i % 4 ? st.st_size == 6 : (st.st_mode & 0777) == 0600));
}

static void shown(struct pair *p)
{
    enum { FILES = 200 };
    _Atomic int64_t *changed = &p->shared->value[0];
    struct dirent *e;
    struct stat st;

    if (p->side == 0) {
        OK(mkdir(pair_mine(p, "shown%u", p->round), 0755));
        for (unsigned i = 0; i < FILES; i++)
            fs_put(pair_mine(p, "shown%u/file%03u", p->round, i), "old", 3);
    }
    pair_meet(p);
    for (unsigned n = 0; p->side == 0 && n < FILES; n++) {
        change(p, n);
        atomic_store(changed, n + 1);
    }
    while (p->side == 1 && atomic_load(changed) < FILES) {
        DIR *d = opendir(pair_mine(p, "shown%u", p->round));
        unsigned before;

        CHECK(d);
        while ((e = next(d)))
            if (stat(pair_mine(p, "shown%u/%s", p->round, e->d_name), &st) < 0)
                EQUAL(ENOENT, errno);
        before = (unsigned)atomic_load(changed);
        for (unsigned i = before > 8 ? before - 8 : 0; i < before; i++)
            check_changed(p, i);
        OK(closedir(d));
    }
    pair_meet(p);
    if (p->side == 0)
        pair_remove_tree(pair_mine(p, "shown%u", p->round));
}

/* One mount's kernel has just looked at a file, and so need not ask; the other mount changes it, or
 * puts another in its place. What a call has changed when it returns is seen by each look that
 * begins after it, also by the file's descriptor. */
enum { LOOKED = 8, CHANGES = 400, LOOKS = 200 };

static void change_again(struct pair *p, int64_t number)
{
    const char *path = pair_mine(p, "looked%u/file%u", p->round, (unsigned)number % LOOKED);
    const char *changed = path;
    struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = number}};

    if (number % 5 == 0) { /* of which the other kernel has never heard */
        changed = pair_mine(p, "looked%u/new", p->round);
        fs_put(changed, "new", 3);
    }
    OK(utimensat(AT_FDCWD, changed, times, 0));
    if (changed != path)
        OK(rename(changed, path));
}

/* The number of the file's last change among the first `done`, the file itself being none. */
static int64_t last_change(int64_t done, unsigned file)
{
    int64_t number = done - (done % LOOKED + LOOKED - file) % LOOKED;

    return number > 0 ? number : 0;
}

static void look_again(struct pair *p, unsigned file, _Atomic int64_t *done)
{
    const char *path = pair_mine(p, "looked%u/file%u", p->round, file);
    int64_t told = last_change(atomic_load(done), file);
    int fd = open(path, O_RDONLY);
    struct stat st;

    OK(fd);
    OK(stat(path, &st));
    CHECK(st.st_mtim.tv_sec >= told);
    for (int i = 0; i < LOOKS; i++) {
        told = last_change(atomic_load(done), file);
        OK(fstat(fd, &st));
        if (st.st_nlink == 0)
            break;
        CHECK(st.st_mtim.tv_sec >= told || told % 5 == 0);
    }
    OK(close(fd));
}

static void looked(struct pair *p)
{
    _Atomic int64_t *done = &p->shared->value[0];

    if (p->side == 0) {
        OK(mkdir(pair_mine(p, "looked%u", p->round), 0755));
        for (unsigned i = 0; i < LOOKED; i++)
            fs_put(pair_mine(p, "looked%u/file%u", p->round, i), "old", 3);
        atomic_store(done, 0);
    }
    pair_meet(p);
    for (int64_t number = 1; p->side == 0 && number <= CHANGES; number++) {
        change_again(p, number);
        atomic_store(done, number);
    }
    while (p->side == 1 && atomic_load(done) < CHANGES)
        look_again(p, pair_own_random(p, LOOKED), done);
    pair_meet(p);
    if (p->side == 0)
        pair_remove_tree(pair_mine(p, "looked%u", p->round));
}

int main(int argc, char **argv)
{
    static const struct pair_scenario scenarios[] = {
        {"listing", .race = listing, .cost = 10},
        {"listing_paused", .race = listing_paused, .cost = 10},
        {"emptied", .race = emptied, .cost = 10},
        {"shown", .race = shown, .cost = 10},
        {"looked", .race = looked, .cost = 10},
        {NULL},
    };

    return pair_main(argc, argv, scenarios);
}
