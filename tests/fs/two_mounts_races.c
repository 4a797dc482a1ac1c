/* ctest: timeout=180 races long=40
 *
 * Races between two mounts: both do a thing at the same moment, and the outcome must be one of
 * those that some order of the two could have had. */
#include "fs_race.h"

static void exclusive_create(struct pair *p)
{
    char text[32];
    int fd, winner;

    start(p);
    fd = open(pair_mine(p, "file"), O_RDWR | O_CREAT | O_EXCL, 0644);
    note(p, fd);
    if (fd >= 0) {
        snprintf(text, sizeof text, "by %d in %u", p->side, p->round);
        CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
        OK(close(fd));
    }
    winner = one_winner(p, EEXIST);
    snprintf(text, sizeof text, "by %d in %u", winner, p->round);
    fs_expect(pair_mine(p, "file"), text, strlen(text));
    pair_meet(p);
    if (p->side == (int)pair_random(p, 2))
        OK(unlink(pair_mine(p, "file")));
}

/* Without O_EXCL both get the same file, and neither loses what the other one wrote into it. */
static void shared_create(struct pair *p)
{
    struct stat st;
    int fd;

    start(p);
    fd = open(pair_mine(p, "file"), O_RDWR | O_CREAT, 0644);
    OK(fd);
    OK(fstat(fd, &st));
    atomic_store(&p->shared->value[DATA + p->side], (int64_t)st.st_ino);
    CHECK(pwrite(fd, p->side ? "1" : "0", 1, p->side) == 1);
    OK(close(fd));
    pair_meet(p);
    EQUAL(atomic_load(&p->shared->value[DATA]), atomic_load(&p->shared->value[DATA + 1]));
    fs_expect(pair_mine(p, "file"), "01", 2);
    pair_meet(p);
    if (p->side == 0)
        OK(unlink(pair_mine(p, "file")));
}

/* mkdir, symlink, mkfifo, link, rename with NOREPLACE: one name, one winner. */
static void one_name(struct pair *p)
{
    unsigned what = pair_random(p, 5);
    int rc;

    fs_put(pair_mine(p, "own%d", p->side), "x", 1);
    start(p);
    if (what == 0)
        rc = mkdir(pair_mine(p, "name"), 0755);
    else if (what == 1)
        rc = symlink(p->side ? "1" : "0", pair_mine(p, "name"));
    else if (what == 2)
        rc = mkfifo(pair_mine(p, "name"), 0644);
    else if (what == 3)
        rc = link(pair_mine(p, "own%d", p->side), pair_mine(p, "name"));
    else
        rc = renameat2(AT_FDCWD, pair_mine(p, "own%d", p->side), AT_FDCWD, pair_mine(p, "name"),
                       RENAME_NOREPLACE);
    note(p, rc);
    one_winner(p, EEXIST);
    if (what == 3)
        EQUAL(rc == 0 ? 2 : 1, fs_stat(pair_mine(p, "own%d", p->side)).st_nlink);
    EQUAL(1, pair_listed(p->dir[p->side], "name", NULL));
    pair_meet(p);
    if (p->side == 0) {
        OK(remove(pair_mine(p, "name")));
        for (int i = 0; i < 2; i++)
            if (unlink(pair_mine(p, "own%d", i)) < 0)
                EQUAL(ENOENT, errno);
    }
}

/* unlink, rmdir and rename of one name by both: it can go only once. */
static void removed_once(struct pair *p)
{
    unsigned what = pair_random(p, 3);
    int rc;

    if (p->side == 0) {
        if (what == 1)
            OK(mkdir(pair_mine(p, "victim"), 0755));
        else
            fs_put(pair_mine(p, "victim"), "x", 1);
    }
    start(p);
    if (what == 0)
        rc = unlink(pair_mine(p, "victim"));
    else if (what == 1)
        rc = rmdir(pair_mine(p, "victim"));
    else
        rc = rename(pair_mine(p, "victim"), pair_mine(p, "moved by %d", p->side));
    note(p, rc);
    rc = one_winner(p, ENOENT);
    pair_absent(pair_mine(p, "victim"));
    if (what == 2) {
        EQUAL(1, fs_stat(pair_mine(p, "moved by %d", rc)).st_nlink);
        pair_absent(pair_mine(p, "moved by %d", !rc));
        pair_meet(p);
        if (p->side == rc)
            OK(unlink(pair_mine(p, "moved by %d", rc)));
    }
}

/* link against unlink of the only name: a link is made, or there is nothing left to link to. */
static void link_or_gone(struct pair *p)
{
    if (p->side == 0)
        fs_put(pair_mine(p, "only"), "x", 1);
    start(p);
    if (p->side == 0)
        note(p, unlink(pair_mine(p, "only")));
    else
        note(p, link(pair_mine(p, "only"), pair_mine(p, "second")));
    pair_meet(p);
    EQUAL(0, noted(p, 0));
    pair_absent(pair_mine(p, "only"));
    if (noted(p, 1) == 0) {
        EQUAL(1, fs_stat(pair_mine(p, "second")).st_nlink);
        fs_expect(pair_mine(p, "second"), "x", 1);
        pair_meet(p);
        if (p->side == 1)
            OK(unlink(pair_mine(p, "second")));
    } else {
        EQUAL(-ENOENT, noted(p, 1));
        pair_absent(pair_mine(p, "second"));
    }
}

/* Puts an entry into a directory, in one of four ways. */
static int put_entry(struct pair *p, unsigned how)
{
    int fd;

    if (how == 0) {
        fd = open(pair_mine(p, "dir/entry"), O_RDWR | O_CREAT, 0644);
        return fd < 0 ? -1 : close(fd);
    }
    if (how == 1)
        return mkdir(pair_mine(p, "dir/entry"), 0755);
    if (how == 2)
        return link(pair_mine(p, "source"), pair_mine(p, "dir/entry"));
    return rename(pair_mine(p, "source"), pair_mine(p, "dir/entry"));
}

/* rmdir against an entry being made in it: never does the entry get lost with the directory. */
static void rmdir_or_create(struct pair *p)
{
    unsigned how = pair_random(p, 4);
    bool over = pair_random(p, 3) == 0; /* the directory goes by a rename over it */

    if (p->side == 0) {
        OK(mkdir(pair_mine(p, "dir"), 0755));
        OK(mkdir(pair_mine(p, "other"), 0755));
        fs_put(pair_mine(p, "source"), "x", 1);
    }
    pair_meet(p);
    if (pair_random(p, 2))
        pair_listed(pair_mine(p, "dir"), "", NULL);
    start(p);
    if (p->side == 0)
        note(p, over ? rename(pair_mine(p, "other"), pair_mine(p, "dir"))
                     : rmdir(pair_mine(p, "dir")));
    else
        note(p, put_entry(p, how));
    pair_meet(p);
    if (noted(p, 1) < 0) {
        EQUAL(-ENOENT, noted(p, 1));
        EQUAL(0, noted(p, 0));
    } else if (noted(p, 0) < 0) {
        EQUAL(-ENOTEMPTY, noted(p, 0));
    } else if (!over) {
        fs_fail(__FILE__, __LINE__, "both the rmdir and what made an entry (%u) succeeded", how);
    }
    /* Over: both may succeed when the entry came into the directory that took the name. */
    if (noted(p, 1) == 0)
        EQUAL(1, pair_listed(pair_mine(p, "dir"), "entry", NULL));
    pair_meet(p);
    if (p->side == 0) {
        pair_remove_tree(pair_mine(p, "dir"));
        pair_remove_tree(pair_mine(p, "other"));
        pair_remove_tree(pair_mine(p, "source"));
    }
}

/* Both make and remove their own names in one directory; nothing gets lost or left over. */
static void neighbours(struct pair *p)
{
    unsigned total;

    if (p->side == 0)
        OK(mkdir(pair_mine(p, "shared"), 0755));
    start(p);
    for (unsigned i = 0; i < 20; i++)
        fs_put(pair_mine(p, "shared/%d-%u", p->side, i), "x", 1);
    pair_meet(p);
    pair_listed(pair_mine(p, "shared"), "", &total);
    EQUAL(40, total);
    pair_meet(p);
    for (unsigned i = 0; i < 20; i++)
        OK(unlink(pair_mine(p, "shared/%d-%u", !p->side, i)));
    pair_meet(p);
    pair_listed(pair_mine(p, "shared"), "", &total);
    EQUAL(0, total);
    pair_meet(p);
    if (p->side == 0)
        OK(rmdir(pair_mine(p, "shared")));
}

/* mkdir -p and rm -r of the same tree by both: only errors that a race explains, nothing left. */
static void trees(struct pair *p)
{
    static const char *const level[] = {"t", "t/u", "t/u/v", "t/u/v/w"};

    start(p);
    for (unsigned i = 0; i < 4; i++)
        if (mkdir(pair_mine(p, "%s", level[i]), 0755) < 0)
            CHECK(errno == EEXIST || errno == ENOENT);
    for (unsigned i = 4; i-- > 0;)
        if (rmdir(pair_mine(p, "%s", level[i])) < 0)
            CHECK(errno == ENOTEMPTY || errno == ENOENT);
    pair_meet(p);
    for (unsigned i = 4; p->side == 0 && i-- > 0;)
        if (rmdir(pair_mine(p, "%s", level[i])) < 0)
            EQUAL(ENOENT, errno);
    pair_meet(p);
    pair_absent(pair_mine(p, "t"));
    FAILS(ENOENT, open(pair_mine(p, "t/file"), O_CREAT | O_WRONLY, 0644));
}

int main(int argc, char **argv)
{
    static const struct pair_scenario scenarios[] = {
        {"exclusive_create", .race = exclusive_create},
        {"shared_create", .race = shared_create},
        {"one_name", .race = one_name},
        {"removed_once", .race = removed_once},
        {"link_or_gone", .race = link_or_gone},
        {"rmdir_or_create", .race = rmdir_or_create},
        {"neighbours", .race = neighbours, .cost = 10},
        {"trees", .race = trees},
        {NULL},
    };

    return pair_main(argc, argv, scenarios);
}
